#include "engine/request.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace bascule {
namespace {

std::vector<int32_t> stop_tokens_of(const RequestSpec& spec, const TokenRules& rules) {
  std::vector<int32_t> tokens = spec.stop_tokens;
  if (!spec.ignore_eos)
    tokens.insert(tokens.end(), rules.end_tokens.begin(), rules.end_tokens.end());
  return tokens;
}

}  // namespace

std::string_view name(EndReason reason) {
  switch (reason) {
    case EndReason::kStop:
      return "stop";
    case EndReason::kLength:
      return "length";
    case EndReason::kCancelled:
      return "cancelled";
    case EndReason::kFailed:
      return "failed";
  }
  return "unknown";
}

Request::Request(RequestId id, RequestSpec spec, std::unique_ptr<RequestListener> listener,
                 const TokenRules& rules, int64_t max_tokens, uint64_t seed)
    : id_(id),
      tokens_(std::move(spec.prompt)),
      n_prompt_(int64_t(tokens_.size())),
      max_tokens_(max_tokens),
      min_tokens_(spec.min_tokens),
      stop_tokens_(stop_tokens_of(spec, rules)),
      sampler_(std::move(spec.sampling), seed, tokens_, rules.vocab_size, rules.n_valid_tokens),
      recorder_(spec.recorder),
      listener_(std::move(listener)),
      cache_salt_(std::move(spec.cache_salt)),
      reuses_prefix_(spec.reuses_prefix) {
  tokens_.reserve(size_t(max_total_tokens()));  // a step allocates nothing
}

std::span<const int32_t> Request::masked_tokens() const {
  if (n_answer() >= min_tokens_) return {};
  return stop_tokens_;
}

PageRun& Request::pages() {
  if (auto* s = std::get_if<Prefilling>(&state_)) return s->pages;
  if (auto* s = std::get_if<Finished>(&state_)) return s->pages;
  BASCULE_CHECK(is<Decoding>());
  return std::get<Decoding>(state_).pages;
}

int64_t Request::n_cached() const {
  if (const auto* s = std::get_if<Prefilling>(&state_)) return s->n_cached;
  if (const auto* s = std::get_if<Finished>(&state_)) return s->n_cached;
  BASCULE_CHECK(is<Decoding>());
  return n_tokens() - 1;
}

std::optional<int32_t> Request::copied_from() const {
  const auto* s = std::get_if<Prefilling>(&state_);
  if (!s || s->copied_from.is_empty()) return {};
  return s->copied_from.page();
}

std::span<const int32_t> Request::sound_tokens() const {
  if (copied_from()) return {};  // not copied yet
  if (const auto* s = std::get_if<Finished>(&state_); s && s->reason == EndReason::kFailed)
    return {};
  return tokens().first(size_t(n_cached()));
}

void Request::start(KvCache::Start start) {
  BASCULE_CHECK(is<Waiting>());
  if (n_preemptions_ == 0) n_found_ = start.n_cached;
  state_ = Prefilling{.pages = std::move(start.pages),
                      .n_cached = start.n_cached,
                      .copied_from = std::move(start.copied_from)};
}

void Request::preempt() {
  BASCULE_CHECK(is<Prefilling>() || is<Decoding>());
  ++n_preemptions_;
  state_ = Waiting{};
}

void Request::ran(int64_t n) {
  BASCULE_CHECK_LE(n, n_to_run());
  if (auto* s = std::get_if<Prefilling>(&state_)) {
    s->n_cached += n;
    s->copied_from = {};
  }
}

void Request::take(const Sampled& sampled) {
  if (sampled.fault == Sampled::Fault::kNotANumber)
    return finish(EndReason::kFailed, "the model gave a logit that is not a number (NaN or +inf)");
  if (sampled.fault == Sampled::Fault::kNothingAllowed)
    return finish(EndReason::kFailed, "masks and filters leave no token to choose");

  if (auto* s = std::get_if<Prefilling>(&state_)) {
    BASCULE_CHECK_EQ(s->n_cached, n_tokens());
    PageRun pages = std::move(s->pages);
    state_ = Decoding{std::move(pages)};
  }
  tokens_.push_back(sampled.token);
  sampler_.accept(sampled.token);
  if (ends_answer(sampled.token)) return finish(EndReason::kStop, {}, sampled.token);

  const TokenEvent event{.request = id_,
                         .token = sampled.token,
                         .index = n_answer() - 1,
                         .logprob = sampled.logprob,
                         .top_logprobs = std::span(sampled.top).first(size_t(sampled.n_top))};
  if (listener_ && listener_->on_token(event) == RequestListener::Verdict::kStop)
    return finish(EndReason::kStop);
  if (n_answer() == max_tokens_) finish(EndReason::kLength);
}

bool Request::ends_answer(int32_t token) const {
  return std::find(stop_tokens_.begin(), stop_tokens_.end(), token) != stop_tokens_.end();
}

void Request::finish(EndReason reason, std::string message, std::optional<int32_t> stop_token) {
  BASCULE_CHECK(!is<Finished>());
  if (is<Waiting>()) {
    state_ = Finished{.reason = reason, .pages = {}};
  } else {
    const int64_t n_rows = copied_from() ? 0 : n_cached();
    PageRun rows = std::move(pages());
    state_ = Finished{.reason = reason, .pages = std::move(rows), .n_cached = n_rows};
  }
  if (!listener_) return;
  listener_->on_end({.request = id_,
                     .reason = reason,
                     .message = std::move(message),
                     .stop_token = stop_token,
                     .n_prompt_tokens = n_prompt_,
                     .n_answer_tokens = n_answer(),
                     .n_cached_tokens = n_found_,
                     .n_preemptions = n_preemptions_});
}

}  // namespace bascule
