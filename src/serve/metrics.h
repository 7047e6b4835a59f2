// What the server counts, for GET /metrics.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace bascule {

// Counts of values below each of a few bounds. Any thread.
class Histogram {
 public:
  void add(double seconds);
  // Prometheus' text of it.
  std::string text(const std::string& name, const std::string& help) const;

 private:
  static constexpr std::array<double, 12> kBounds = {0.001, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                     0.25,  0.5,   1,    2.5,   10,   60};
  std::array<std::atomic<int64_t>, kBounds.size() + 1> counts_{};
  std::atomic<int64_t> sum_us_{0};
};

struct Metrics {
  std::atomic<int64_t> n_running{0};        // answers that the engine has not ended
  std::atomic<int64_t> n_prompt_tokens{0};  // of answers that ended
  std::atomic<int64_t> n_answer_tokens{0};  // as they come
  std::atomic<int64_t> n_cancelled{0};      // answers whose client went
  std::atomic<int64_t> n_failed{0};
  Histogram first_token, between_tokens, whole_answer;

  void count_response(int status);
  std::string text() const;

 private:
  mutable std::mutex mutex_;
  std::map<int, int64_t> n_responses_;  // by HTTP status
};

}  // namespace bascule
