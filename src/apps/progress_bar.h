// A bar on standard error while something long is read; silent where that is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace bascule {

class ProgressBar {
 public:
  ProgressBar(std::string what, bool enabled);
  ~ProgressBar();  // clears the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(int64_t done_bytes, int64_t all_bytes);

 private:
  std::string what_;
  bool enabled_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point started_, shown_;
};

// "reading weights  [######----]   61 %  2.10 GB/s"
std::string progress_line(const std::string& what, int64_t done_bytes, int64_t all_bytes,
                          double seconds);

}  // namespace bascule
