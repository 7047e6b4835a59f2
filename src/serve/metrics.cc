#include "serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace bascule {
namespace {

std::string head(const std::string& name, const std::string& help, const char* type) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

std::string value(const std::string& name, const std::string& help, const char* type, int64_t n) {
  return head(name, help, type) + fmt::format("{} {}\n", name, n);
}

}  // namespace

void Histogram::add(double seconds) {
  const auto bound = std::ranges::lower_bound(kBounds, seconds);
  ++counts_[size_t(bound - kBounds.begin())];
  sum_us_ += int64_t(seconds * 1e6);
}

std::string Histogram::text(const std::string& name, const std::string& help) const {
  std::string text = head(name, help, "histogram");
  int64_t n = 0;
  for (size_t i = 0; i < kBounds.size(); ++i)
    text += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, kBounds[i], n += counts_[i]);
  n += counts_.back();
  return text + fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, n,
                            double(sum_us_) * 1e-6);
}

void Metrics::count_response(int status) {
  const std::scoped_lock lock(mutex_);
  ++n_responses_[status];
}

std::string Metrics::text() const {
  std::string text = head("bascule_responses_total", "HTTP responses by status.", "counter");
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [status, n] : n_responses_)
      text += fmt::format("bascule_responses_total{{status=\"{}\"}} {}\n", status, n);
  }
  text += value("bascule_answers_running", "Answers that the engine has not ended.", "gauge",
                n_running);
  text += value("bascule_prompt_tokens_total", "Prompt tokens of answers that ended.", "counter",
                n_prompt_tokens);
  text += value("bascule_answer_tokens_total", "Tokens generated.", "counter", n_answer_tokens);
  text += value("bascule_answers_cancelled_total", "Answers whose client went before the end.",
                "counter", n_cancelled);
  text += value("bascule_answers_failed_total", "Answers that the engine could not finish.",
                "counter", n_failed);
  text += first_token.text("bascule_first_token_seconds", "From a request to its first token.");
  text += between_tokens.text("bascule_between_tokens_seconds", "Between tokens of an answer.");
  return text + whole_answer.text("bascule_answer_seconds", "From a request to its answer's end.");
}

}  // namespace bascule
