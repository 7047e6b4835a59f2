// Who runs next. plan() makes a step: each running answer's next token first, then pieces of
// prompts, oldest request first, within a budget of tokens; commit() takes in what happened.
//
// Pages. A request starts when there are pages for all the tokens it has and one more, so that
// only a growing answer can find none. Then the youngest running request of the group gives up its
// own and waits again with its tokens; it runs them anew later (the draws don't change,
// sampling.h). An older request never gives way to a younger one and waiting ones start in order of
// age, so the oldest always moves on, and one that was preempted restarts only after another has
// ended. Rows that the cache knows are not run again (kv/cache.h): a page is offered to others
// after the step that filled it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/kv/cache.h"
#include "engine/request.h"
#include "engine/step_plan.h"

namespace bascule {

struct SchedulerOptions {
  int n_groups = 1;  // data-parallel ones
  // Of each group:
  int64_t n_pages = 0;
  int64_t page_size = 16;          // tokens
  int64_t max_context = 0;         // tokens of a request, prompt and answer
  int64_t max_batch_tokens = 512;  // of a step
  int64_t max_requests = 64;       // running at one time
  int64_t max_logit_rows = 64;     // of a step; at least max_requests
  bool keeps_prefixes = true;      // pages stay for requests that begin with the same tokens
};

class Scheduler {
 public:
  static Result<Scheduler> create(const SchedulerOptions& options);

  // The most tokens, prompt and answer, that a request can have.
  int64_t max_request_tokens() const;

  // To the group with the least work. The request fits: max_total_tokens() <= max_request_tokens().
  void add(std::unique_ptr<Request> request);

  // Ends it with kCancelled, whatever its state; nothing for an id that has ended.
  void cancel(RequestId id, const std::string& why);
  void cancel_all(const std::string& why);

  bool has_work() const;

  // Valid until the next call. Not empty while has_work().
  const StepPlan& plan();
  void commit(const StepResult& result);

  struct Counts {
    int64_t waiting = 0, running = 0;
    int64_t free_pages = 0, held_pages = 0, idle_pages = 0;  // idle: kept, and held by nobody
    // Since the start:
    int64_t preemptions = 0;
    int64_t rows_found = 0;  // in the cache, by requests that started
    int64_t rows_run = 0;
  };
  Counts counts() const;

  // Stops the process where a page is lost, or held with no request running.
  void audit() const;

  PagePool& pool(int group) { return groups_[group].cache.pool(); }

 private:
  struct Group {
    KvCache cache;
    std::vector<std::unique_ptr<Request>> running;  // oldest first
    std::vector<std::unique_ptr<Request>> waiting;  // oldest last
    // Tokens that its requests may still have to run: what "least work" counts.
    int64_t work() const;
  };
  explicit Scheduler(const SchedulerOptions& options) : options_(options) {}

  void plan_group(Group& group, GroupPlan& plan);
  bool make_room(Group& group, size_t index);  // for the next token of running[index]
  void preempt_youngest(Group& group);
  bool start_oldest(Group& group);
  int64_t room_for(const Request& request, const GroupPlan& plan) const;
  void add_piece(Group& group, Request& request, int64_t n_tokens, GroupPlan& plan) const;
  void commit_piece(Group& group, const Piece& piece, const Sampled* drawn);

  SchedulerOptions options_;
  std::vector<Group> groups_;
  StepPlan plan_;
  int64_t n_preemptions_ = 0, n_rows_found_ = 0, n_rows_run_ = 0;
};

}  // namespace bascule
