// The threads of one rank: a fixed team that splits loops. The caller is worker 0, so a team of one
// starts no thread. No stealing and no queue: decoding is many short loops, and what costs there is
// waking up, so a waiting worker spins for a while before it sleeps.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.h"

namespace bascule {

class Threads {
 public:
  struct Options {
    int count = 1;                    // workers, the caller among them
    int64_t scratch_bytes = 1 << 20;  // of each worker, for kernels; 64-byte aligned
    int64_t shared_bytes = 0;         // of all workers together; 64-byte aligned
    std::vector<int> cpus;            // pin worker i to cpus[i]; empty: the system places them
    int spin_us = 100;                // how long a waiting worker spins before it sleeps
  };
  explicit Threads(Options options);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int count() const { return count_; }
  std::span<std::byte> scratch(int worker) { return scratch_[worker]; }
  std::span<std::byte> shared() { return shared_; }

  // Calls f(worker) once on every worker and returns when all have. Only one thread may call into a
  // team, and f must not.
  void run(FunctionRef<void(int worker)> f);

  // Cuts [0, n) into one contiguous range a worker, at multiples of `grain`, and calls
  // f(begin, end, worker) for each that is not empty.
  template <typename F>
  void ranges(int64_t n, int64_t grain, F&& f) {
    const int64_t n_grains = (n + grain - 1) / grain;
    if (n_grains <= 1 || count_ == 1) {
      if (n > 0) f(int64_t{0}, n, 0);
      return;
    }
    run([&](int worker) {
      const int64_t begin = n_grains * worker / count_ * grain;
      const int64_t end = std::min(n, n_grains * (worker + 1) / count_ * grain);
      if (begin < end) f(begin, end, worker);
    });
  }

  // Hands out 0 … n-1 one at a time: f(index, worker). For tasks of unequal length.
  template <typename F>
  void tasks(int64_t n, F&& f) {
    if (n <= 1 || count_ == 1) {
      for (int64_t i = 0; i < n; ++i) f(i, 0);
      return;
    }
    std::atomic<int64_t> next{0};
    run([&](int worker) {
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) f(i, worker);
    });
  }

 private:
  struct State;
  void work(int worker);

  int count_;
  std::vector<std::span<std::byte>> scratch_;
  std::span<std::byte> shared_;
  std::unique_ptr<State> state_;
};

// CPUs this process may run on: the affinity mask, cut to the cgroup's quota. At least one.
std::vector<int> usable_cpus();

}  // namespace bascule
