// Listeners that keep what they hear: for tests.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "engine/request.h"

namespace bascule {

inline SamplingParams greedy() { return {.temperature = 0}; }

// What became of a request.
struct Answer {
  RequestId id = 0;
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<std::vector<TokenLogprob>> top_logprobs;
  std::optional<EndEvent> end;
  int n_ends = 0;
};

class KeepingListener final : public RequestListener {
 public:
  explicit KeepingListener(Answer& answer, std::function<Verdict(const TokenEvent&)> verdict = {})
      : answer_(&answer), verdict_(std::move(verdict)) {}

  Verdict on_token(const TokenEvent& event) override {
    answer_->tokens.push_back(event.token);
    answer_->logprobs.push_back(event.logprob);
    answer_->top_logprobs.emplace_back(event.top_logprobs.begin(), event.top_logprobs.end());
    return verdict_ ? verdict_(event) : Verdict::kGoOn;
  }
  void on_end(const EndEvent& event) override {
    answer_->end = event;
    ++answer_->n_ends;
  }

 private:
  Answer* answer_;
  std::function<Verdict(const TokenEvent&)> verdict_;
};

}  // namespace bascule
