// The door to the engine: submit, cancel, and the events that a request's listener hears. One
// thread, the engine's, owns requests and scheduler; it is either the loop of start(), or whoever
// calls step().
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "device/buffer.h"
#include "engine/request.h"
#include "engine/runner.h"
#include "engine/scheduler.h"

namespace bascule {

// What an engine is made of, planned and bound (setup.h makes it from a checkpoint).
struct EngineParts {
  SchedulerOptions scheduler;
  RunnerOptions runner;
  TokenRules rules;
  std::vector<Buffer> memory;                  // what the models are bound to
  std::vector<std::unique_ptr<Comm>> comms;    // what connects them
  std::vector<std::unique_ptr<Model>> models;  // [world]
  int64_t max_queued = 4096;                   // requests that wait, at most

  // Not empty: given-back pages are poisoned (kv/pages.h). Each rank's page 0, and a page's bytes.
  std::vector<std::byte*> poisoned_pages;
  int64_t page_bytes = 0;
};

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> create(EngineParts parts);
  ~Engine();  // ends every request with kCancelled

  // From any thread. A request that can never run is refused here, with the reason. `listener` may
  // be null.
  Result<RequestId> submit(RequestSpec spec, std::unique_ptr<RequestListener> listener);

  // From any thread; takes effect before the next step. Nothing for a request that has ended.
  void cancel(RequestId id);

  // Runs steps on a thread of its own whenever there is work.
  void start();
  // Ends the loop and every request. Later submissions are refused.
  void stop();

  // One turn, for a caller that drives the engine itself: false when there is nothing to do, and
  // every page has been accounted for.
  bool step();
  void run_until_idle() {
    while (step()) continue;
  }

  // The most tokens, prompt and answer, that a request can have.
  int64_t max_request_tokens() const { return scheduler_.max_request_tokens(); }

  // On the engine's thread.
  Scheduler::Counts counts() const { return scheduler_.counts(); }
  void audit() const { scheduler_.audit(); }

 private:
  Engine(EngineParts parts, Scheduler scheduler);
  Status validate(const RequestSpec& spec) const;
  void loop();
  void drain_inbox();

  TokenRules rules_;
  int64_t max_queued_;
  std::vector<Buffer> memory_;  // these two before the models that use them
  std::vector<std::unique_ptr<Comm>> comms_;
  Scheduler scheduler_;
  Runner runner_;
  std::atomic<RequestId> next_id_ = 1;
  bool audited_ = false;  // since the last step

  // What other threads leave for the engine's.
  struct Inbox {
    std::vector<std::unique_ptr<Request>> requests;
    std::vector<RequestId> cancelled;
    bool stopping = false;
  };
  std::mutex mutex_;
  std::condition_variable arrival_;
  Inbox inbox_;            // under mutex_
  int64_t n_waiting_ = 0;  // under mutex_: in the scheduler, after the last drain
  Inbox drained_;          // the engine's thread's: swapped with inbox_, so that neither allocates
  std::thread thread_;
};

}  // namespace bascule
