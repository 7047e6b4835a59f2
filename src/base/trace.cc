#include "base/trace.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "base/atomic_file.h"

namespace bascule::trace {
namespace {

struct Event {
  const char* name;
  int64_t begin_ns, end_ns;
};

// One thread's zones; its owner alone appends.
struct Lane {
  std::vector<Event> events;  // its capacity is taken at once
  int64_t max_events = 0, n_lost = 0;
};

struct State {
  std::mutex mutex;
  std::vector<std::unique_ptr<Lane>> lanes;  // in order of each thread's first zone
  int64_t max_events = 0;
  int64_t started_ns = 0;
  int64_t run = 0;  // of start(): a thread's lane belongs to one
  std::set<std::string> names;
};

State& state() {
  static State s;
  return s;
}

Lane& lane() {
  thread_local Lane* mine = nullptr;
  thread_local int64_t run = 0;
  if (mine && run == state().run) return *mine;
  const std::scoped_lock lock(state().mutex);
  run = state().run;
  mine = state().lanes.emplace_back(std::make_unique<Lane>()).get();
  mine->max_events = state().max_events;
  mine->events.reserve(size_t(mine->max_events));
  return *mine;
}

}  // namespace

std::atomic<bool> is_on = false;

int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

void start(int64_t max_events_per_thread) {
  const std::scoped_lock lock(state().mutex);
  state().lanes.clear();
  state().max_events = max_events_per_thread;
  state().started_ns = now_ns();
  ++state().run;
  is_on = true;
}

void keep(const char* name, int64_t begin_ns) {
  Lane& mine = lane();
  if (int64_t(mine.events.size()) == mine.max_events) {
    ++mine.n_lost;
  } else {
    mine.events.push_back({name, begin_ns, now_ns()});
  }
}

const char* name(const std::string& text) {
  const std::scoped_lock lock(state().mutex);
  return state().names.insert(text).first->c_str();
}

Result<int64_t> write(const std::filesystem::path& path) {
  is_on = false;
  const std::scoped_lock lock(state().mutex);
  BASCULE_TRY_ASSIGN(AtomicFile file, AtomicFile::create(path));
  int64_t n_lost = 0, offset = 0;
  std::string text = "{\"traceEvents\": [";
  const auto write_text = [&]() -> Status {
    BASCULE_TRY(file.write_at(offset, text.data(), int64_t(text.size())));
    offset += int64_t(text.size());
    text.clear();
    return {};
  };
  const char* separator = "\n";
  for (size_t thread = 0; thread < state().lanes.size(); ++thread) {
    n_lost += state().lanes[thread]->n_lost;
    for (const Event& e : state().lanes[thread]->events) {
      // Microseconds. Names are ours: none needs escaping.
      text += fmt::format(
          "{}{{\"name\": \"{}\", \"ph\": \"X\", \"ts\": {:.3f}, \"dur\": {:.3f}, \"pid\": 1, "
          "\"tid\": {}}}",
          separator, e.name, double(e.begin_ns - state().started_ns) / 1e3,
          double(e.end_ns - e.begin_ns) / 1e3, thread);
      separator = ",\n";
      if (text.size() > size_t{1} << 20) BASCULE_TRY(write_text());
    }
  }
  text += fmt::format("\n], \"otherData\": {{\"zones_not_kept\": {}}}}}\n", n_lost);
  BASCULE_TRY(write_text());
  BASCULE_TRY(file.commit());
  return n_lost;
}

}  // namespace bascule::trace
