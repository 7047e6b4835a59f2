// Where time goes: named stretches of each thread, as a timeline for ui.perfetto.dev. With tracing
// off a zone costs one branch.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/status.h"

namespace bascule {

// The zones of the engine. Each op of the model has one too, by its site: "layers.attention.q_a".
namespace zones {
inline constexpr char kLoad[] = "load";
inline constexpr char kReadWeights[] = "read weights";
inline constexpr char kPlanEngine[] = "plan engine";
inline constexpr char kSchedule[] = "schedule";
inline constexpr char kRun[] = "run";
inline constexpr char kForward[] = "forward";
inline constexpr char kDraw[] = "draw";
inline constexpr char kCommit[] = "commit";
}  // namespace zones

namespace trace {

// From here on each thread keeps up to `max_events` zones; later ones are counted, not kept.
void start(int64_t max_events_per_thread = int64_t{1} << 20);

// Ends tracing and writes what was kept, in Chrome's trace format. While no zone is open elsewhere.
// Returns how many zones were not kept.
Result<int64_t> write(const std::filesystem::path& path);

// The same text in memory that lives as long as the process: a zone's name is only pointed to.
const char* name(const std::string& text);

extern std::atomic<bool> is_on;
int64_t now_ns();
void keep(const char* name, int64_t begin_ns);

}  // namespace trace

// Lives as long as the zone that it names.
class TraceZone {
 public:
  explicit TraceZone(const char* name)
      : name_(trace::is_on.load(std::memory_order_relaxed) ? name : nullptr),
        begin_ns_(name_ ? trace::now_ns() : 0) {}
  ~TraceZone() {
    if (name_) trace::keep(name_, begin_ns_);
  }
  TraceZone(const TraceZone&) = delete;
  TraceZone& operator=(const TraceZone&) = delete;

 private:
  const char* name_;
  int64_t begin_ns_;
};

}  // namespace bascule
