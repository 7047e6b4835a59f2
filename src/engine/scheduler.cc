#include "engine/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/trace.h"

namespace bascule {
namespace {

// Before a request loses its pages: the one that is not full may be of use too.
void keep_last_page(KvCache& cache, Request& request) {
  if (const auto tokens = request.sound_tokens(); !tokens.empty())
    cache.publish_last(request.pages(), request.cache_salt(), tokens);
}

}  // namespace

Result<Scheduler> Scheduler::create(const SchedulerOptions& options) {
  BASCULE_CHECK_LE(options.max_requests, options.max_batch_tokens);
  BASCULE_CHECK_LE(options.max_requests, options.max_logit_rows);
  Scheduler scheduler(options);
  const int64_t size = options.page_size;
  const int64_t longest = (scheduler.max_request_tokens() + size - 1) / size;
  for (int g = 0; g < options.n_groups; ++g) {
    BASCULE_TRY_ASSIGN(KvCache cache, KvCache::create({.pool = {.n_pages = options.n_pages,
                                                                .max_runs = options.max_requests,
                                                                .max_pages_per_run = longest},
                                                       .page_size = size,
                                                       .keeps_prefixes = options.keeps_prefixes}));
    Group group{.cache = std::move(cache), .running = {}, .waiting = {}};
    group.running.reserve(size_t(options.max_requests));
    group.waiting.reserve(size_t(options.max_requests));
    scheduler.groups_.push_back(std::move(group));
    scheduler.plan_.groups.emplace_back().reserve(options.max_batch_tokens, options.max_logit_rows);
  }
  scheduler.plan_.group_tokens.resize(size_t(options.n_groups));
  return scheduler;
}

int64_t Scheduler::max_request_tokens() const {
  return std::min(options_.max_context, options_.n_pages * options_.page_size);
}

int64_t Scheduler::Group::work() const {
  int64_t n = 0;
  for (const auto& r : waiting) n += r->max_total_tokens();
  for (const auto& r : running) n += r->max_total_tokens() - r->n_cached();
  return n;
}

void Scheduler::add(std::unique_ptr<Request> request) {
  BASCULE_CHECK_LE(request->max_total_tokens(), max_request_tokens());
  Group& group = *std::min_element(groups_.begin(), groups_.end(),
                                   [](auto& a, auto& b) { return a.work() < b.work(); });
  group.waiting.insert(group.waiting.begin(), std::move(request));
}

void Scheduler::cancel(RequestId id, const std::string& why) {
  for (Group& group : groups_)
    for (auto* list : {&group.waiting, &group.running}) {
      const auto found =
          std::find_if(list->begin(), list->end(), [&](auto& r) { return r->id() == id; });
      if (found == list->end()) continue;
      (*found)->finish(EndReason::kCancelled, why);
      keep_last_page(group.cache, **found);
      list->erase(found);
      return;
    }
}

void Scheduler::cancel_all(const std::string& why) {
  for (Group& group : groups_)
    for (auto* list : {&group.waiting, &group.running}) {
      for (auto& request : *list) request->finish(EndReason::kCancelled, why);
      list->clear();
    }
}

bool Scheduler::has_work() const {
  return std::any_of(groups_.begin(), groups_.end(),
                     [](const Group& g) { return !g.waiting.empty() || !g.running.empty(); });
}

const StepPlan& Scheduler::plan() {
  const TraceZone zone(zones::kSchedule);
  for (size_t g = 0; g < groups_.size(); ++g) {
    plan_group(groups_[g], plan_.groups[g]);
    plan_.group_tokens[g] = plan_.groups[g].n_tokens();
  }
  BASCULE_CHECK(!plan_.empty() || !has_work());  // work that nothing moves would wait for ever
  return plan_;
}

void Scheduler::plan_group(Group& group, GroupPlan& plan) {
  plan.clear();
  plan.page_table = group.cache.pool().table();
  // Preemption only ever shortens `running` behind index i.
  for (size_t i = 0; i < group.running.size(); ++i) {
    Request& request = *group.running[i];
    if (request.is<Decoding>() && make_room(group, i)) add_piece(group, request, 1, plan);
  }
  const auto prefill = [&](Request& request) {
    if (const int64_t n = room_for(request, plan); n > 0) add_piece(group, request, n, plan);
  };
  for (auto& request : group.running)
    if (request->is<Prefilling>()) prefill(*request);
  while (plan.n_tokens() < options_.max_batch_tokens && start_oldest(group))
    prefill(*group.running.back());
}

// A page for the next token, if it needs one. Takes them from younger requests, and where there is
// none, from itself: false.
bool Scheduler::make_room(Group& group, size_t index) {
  Request& request = *group.running[index];
  while (request.pages().n_pages() < group.cache.pages_for(request.n_tokens())) {
    if (group.cache.extend(request.pages(), 1)) break;
    const bool is_youngest = index + 1 == group.running.size();
    preempt_youngest(group);
    if (is_youngest) return false;
  }
  return true;
}

void Scheduler::preempt_youngest(Group& group) {
  std::unique_ptr<Request> request = std::move(group.running.back());
  group.running.pop_back();
  keep_last_page(group.cache, *request);
  request->preempt();
  ++n_preemptions_;
  group.waiting.push_back(std::move(request));  // older than all that wait
}

bool Scheduler::start_oldest(Group& group) {
  if (group.waiting.empty()) return false;
  Request& request = *group.waiting.back();
  const int64_t n_more = std::min<int64_t>(1, request.max_total_tokens() - request.n_tokens());
  auto start =
      group.cache.start(request.cache_salt(), request.tokens(), n_more, request.reuses_prefix());
  if (!start) return false;
  n_rows_found_ += start->n_cached;
  request.start(std::move(*start));
  group.running.push_back(std::move(group.waiting.back()));
  group.waiting.pop_back();
  return true;
}

// How many of its tokens fit into the rest of the step.
int64_t Scheduler::room_for(const Request& request, const GroupPlan& plan) const {
  const int64_t n = std::min(request.n_to_run(), options_.max_batch_tokens - plan.n_tokens());
  const int64_t rows = options_.max_logit_rows - int64_t(plan.logit_rows.size());
  if (request.recorder()) return std::min(n, rows);
  return rows > 0 ? n : std::min(n, request.n_to_run() - 1);
}

void Scheduler::add_piece(Group& group, Request& request, int64_t n_tokens, GroupPlan& plan) const {
  const int64_t first = request.n_cached(), end = first + n_tokens;
  const bool draws = end == request.n_tokens();
  if (const auto from = request.copied_from())
    plan.copies.push_back(
        {*from, group.cache.pool().page_of(request.pages(), first / options_.page_size)});
  for (int64_t p = first; p < end; ++p) {
    const int64_t row = plan.n_tokens();
    plan.tokens.push_back(request.tokens()[size_t(p)]);
    plan.position.push_back(int32_t(p));
    plan.sequence.push_back(request.pages().row());
    if (!request.recorder() && !(draws && p + 1 == end)) continue;
    if (request.recorder())
      plan.watched.push_back({request.recorder(), row, int64_t(plan.logit_rows.size()), p});
    plan.logit_rows.push_back(int32_t(row));
  }
  plan.pieces.push_back({&request, n_tokens, draws});
  if (draws)
    plan.draws.push_back({.sampler = &request.sampler(),
                          .masked = request.masked_tokens(),
                          .position = end,
                          .logit_row = int64_t(plan.logit_rows.size()) - 1});
}

void Scheduler::commit(const StepResult& result) {
  const TraceZone zone(zones::kCommit);
  for (size_t g = 0; g < groups_.size(); ++g) {
    size_t n_drawn = 0;
    for (const Piece& piece : plan_.groups[g].pieces)
      commit_piece(groups_[g], piece, piece.draws ? &result.groups[g][n_drawn++] : nullptr);
    std::erase_if(groups_[g].running, [](const auto& r) { return r->template is<Finished>(); });
  }
}

void Scheduler::commit_piece(Group& group, const Piece& piece, const Sampled* drawn) {
  Request& request = *piece.request;
  const int64_t n_before = request.n_cached();
  request.ran(piece.n_tokens);
  n_rows_run_ += piece.n_tokens;
  // A page whose rows may have made the logits unsound is not for others.
  if (!drawn || drawn->fault != Sampled::Fault::kNotANumber)
    group.cache.publish(request.pages(), request.cache_salt(),
                        request.tokens().first(size_t(n_before + piece.n_tokens)), n_before);
  if (drawn) request.take(*drawn);
  if (request.is<Finished>()) keep_last_page(group.cache, request);
}

Scheduler::Counts Scheduler::counts() const {
  Counts counts{
      .preemptions = n_preemptions_, .rows_found = n_rows_found_, .rows_run = n_rows_run_};
  for (const Group& group : groups_) {
    counts.waiting += int64_t(group.waiting.size());
    counts.running += int64_t(group.running.size());
    const PagePool& pool = group.cache.pool();
    counts.free_pages += pool.n_free();
    counts.held_pages += pool.n_held();
    counts.idle_pages += pool.n_idle();
  }
  return counts;
}

void Scheduler::audit() const {
  for (const Group& group : groups_) {
    group.cache.audit();
    if (group.running.empty()) BASCULE_CHECK_EQ(group.cache.pool().n_held(), 0);
  }
}

}  // namespace bascule
