#include "engine/engine.h"

#include <fmt/format.h>

#include <random>
#include <utility>

namespace bascule {
namespace {

uint64_t fresh_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(EngineParts parts) {
  BASCULE_TRY_ASSIGN(Scheduler scheduler, Scheduler::create(parts.scheduler));
  return std::unique_ptr<Engine>(new Engine(std::move(parts), std::move(scheduler)));
}

Engine::Engine(EngineParts parts, Scheduler scheduler)
    : rules_(std::move(parts.rules)),
      max_queued_(parts.max_queued),
      memory_(std::move(parts.memory)),
      comms_(std::move(parts.comms)),
      scheduler_(std::move(scheduler)),
      runner_(parts.runner, std::move(parts.models)) {
  if (parts.poisoned_pages.empty()) return;
  const int dp = parts.runner.layout.dp;
  for (int g = 0; g < dp; ++g) {
    std::vector<std::byte*> memories;
    for (int r = 0; r < int(parts.poisoned_pages.size()); ++r)
      if (Placement(parts.runner.layout, r).group() == g)
        memories.push_back(parts.poisoned_pages[r]);
    scheduler_.pool(g).poison_free_pages(memories, parts.page_bytes);
  }
}

Engine::~Engine() { stop(); }

Status Engine::validate(const RequestSpec& spec) const {
  if (spec.prompt.empty())
    return invalid_argument("the prompt is empty: it needs a token at least");
  for (size_t i = 0; i < spec.prompt.size(); ++i)
    if (spec.prompt[i] < 0 || spec.prompt[i] >= rules_.vocab_size)
      return out_of_range(fmt::format("token {} of the prompt is {}: ids are from 0 to {}", i,
                                      spec.prompt[i], rules_.vocab_size - 1));
  for (const int32_t token : spec.stop_tokens)
    if (token < 0 || token >= rules_.vocab_size)
      return out_of_range(
          fmt::format("stop token {}: ids are from 0 to {}", token, rules_.vocab_size - 1));
  if (spec.max_tokens && *spec.max_tokens < 1)
    return invalid_argument(fmt::format("max_tokens {}: 1 at least", *spec.max_tokens));
  if (spec.min_tokens < 0)
    return invalid_argument(fmt::format("min_tokens {}: 0 or more", spec.min_tokens));
  if (spec.max_tokens && spec.min_tokens > *spec.max_tokens)
    return invalid_argument(
        fmt::format("min_tokens {} is more than max_tokens {}", spec.min_tokens, *spec.max_tokens));
  return bascule::validate(spec.sampling, rules_.vocab_size);
}

Result<RequestId> Engine::submit(RequestSpec spec, std::unique_ptr<RequestListener> listener) {
  BASCULE_TRY(validate(spec));
  const int64_t n_prompt = int64_t(spec.prompt.size()), limit = max_request_tokens();
  // Without overflow, whatever max_tokens is.
  const int64_t max_tokens = spec.max_tokens.value_or(std::max<int64_t>(limit - n_prompt, 1));
  if (n_prompt >= limit || max_tokens > limit - n_prompt)
    return out_of_range(fmt::format(
        "a prompt of {} tokens and an answer of {} do not fit: prompt and answer together may have "
        "{} tokens here",
        n_prompt, max_tokens, limit));

  const RequestId id = next_id_.fetch_add(1);
  auto request = std::make_unique<Request>(id, std::move(spec), std::move(listener), rules_,
                                           max_tokens, fresh_seed());
  const std::lock_guard lock(mutex_);
  if (inbox_.stopping) return unavailable("the engine is stopping");
  if (n_waiting_ + int64_t(inbox_.requests.size()) >= max_queued_)
    return resource_exhausted(
        fmt::format("{} requests wait already: try again later", max_queued_));
  inbox_.requests.push_back(std::move(request));
  arrival_.notify_one();
  return id;
}

void Engine::cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  inbox_.cancelled.push_back(id);
  arrival_.notify_one();
}

// One turn. Not overlapped with the step before: on the CPU the engine's thread is itself one of
// the workers, and the next step needs the tokens of this one.
bool Engine::step() {
  drain_inbox();
  if (!scheduler_.has_work()) {
    if (!audited_) scheduler_.audit();
    audited_ = true;
    return false;
  }
  audited_ = false;
  scheduler_.commit(runner_.run(scheduler_.plan()));
  return true;
}

void Engine::drain_inbox() {
  {
    const std::lock_guard lock(mutex_);
    std::swap(inbox_.requests, drained_.requests);
    std::swap(inbox_.cancelled, drained_.cancelled);
    n_waiting_ = scheduler_.counts().waiting + int64_t(drained_.requests.size());
  }
  for (auto& request : drained_.requests) scheduler_.add(std::move(request));
  for (const RequestId id : drained_.cancelled) scheduler_.cancel(id, "cancelled by the caller");
  drained_.requests.clear();
  drained_.cancelled.clear();
}

void Engine::start() {
  BASCULE_CHECK(!thread_.joinable());
  thread_ = std::thread([this] { loop(); });
}

void Engine::loop() {
  for (;;) {
    const bool worked = step();
    std::unique_lock lock(mutex_);
    if (!worked)
      arrival_.wait(lock, [&] {
        return inbox_.stopping || !inbox_.requests.empty() || !inbox_.cancelled.empty();
      });
    if (inbox_.stopping) return;
  }
}

void Engine::stop() {
  {
    const std::lock_guard lock(mutex_);
    inbox_.stopping = true;
    arrival_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  drain_inbox();
  scheduler_.cancel_all("the engine stopped");
}

}  // namespace bascule
