#include "apps/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "apps/terminal.h"

namespace bascule {

using Clock = std::chrono::steady_clock;

ProgressBar::ProgressBar(std::string what, bool enabled)
    : what_(std::move(what)),
      enabled_(enabled && is_terminal(STDERR_FILENO)),
      started_(Clock::now()),
      shown_(started_) {}

ProgressBar::~ProgressBar() {
  if (drawn_) print_notice("\r{:72}\r", "");
}

void ProgressBar::show(int64_t done_bytes, int64_t all_bytes) {
  const auto now = Clock::now();
  if (!enabled_ || now - shown_ < std::chrono::milliseconds(100)) return;
  shown_ = now;
  drawn_ = true;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  print_notice("\r{}", progress_line(what_, done_bytes, all_bytes, seconds));
}

std::string progress_line(const std::string& what, int64_t done_bytes, int64_t all_bytes,
                          double seconds) {
  const double share =
      all_bytes > 0 ? std::clamp(double(done_bytes) / double(all_bytes), 0.0, 1.0) : 1;
  constexpr int kWidth = 24;
  const int filled = int(share * kWidth);
  return fmt::format("{}  [{:#<{}}{:-<{}}]  {:3.0f} %  {:.2f} GB/s", what, "", filled, "",
                     kWidth - filled, 100 * share,
                     double(done_bytes) / 1e9 / std::max(seconds, 1e-9));
}

}  // namespace bascule
