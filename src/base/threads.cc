#include "base/threads.h"

#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "base/check.h"

namespace bascule {
namespace {

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns once `value` differs from `old`: spins for spin_us, then sleeps.
uint32_t await_change(const std::atomic<uint32_t>& value, uint32_t old, int spin_us) {
  const auto started = std::chrono::steady_clock::now();
  for (int round = 0;; ++round) {
    const uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    pause();
    if (round % 64 == 63 &&
        std::chrono::steady_clock::now() - started > std::chrono::microseconds(spin_us))
      break;
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);  // a wish: a refusal costs speed only
}

// CPUs that the cgroup (v2) lets this process keep busy; infinity without a quota.
double cgroup_cpus() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return INFINITY;
  return std::max(1.0, std::strtod(quota.c_str(), nullptr) / period);
}

}  // namespace

struct Threads::State {
  int spin_us;
  std::vector<int> cpus;
  std::vector<std::thread> threads;
  std::unique_ptr<std::byte, decltype(&std::free)> scratch{nullptr, &std::free};
  const FunctionRef<void(int)>* job = nullptr;
  bool stopping = false;
  alignas(64) std::atomic<uint32_t> epoch{0};    // one more for each job
  alignas(64) std::atomic<uint32_t> running{0};  // workers that have not finished it
};

Threads::Threads(Options options) : count_(options.count), state_(std::make_unique<State>()) {
  BASCULE_CHECK_LE(1, count_);
  state_->spin_us = options.spin_us;
  state_->cpus = std::move(options.cpus);
  const int64_t each = (options.scratch_bytes + 63) / 64 * 64;
  const int64_t shared = (options.shared_bytes + 63) / 64 * 64;
  state_->scratch.reset(
      static_cast<std::byte*>(std::aligned_alloc(64, size_t(each * count_ + shared))));
  BASCULE_CHECK(state_->scratch || each * count_ + shared == 0);
  shared_ = {state_->scratch.get() + each * count_, size_t(shared)};
  for (int i = 0; i < count_; ++i)
    scratch_.emplace_back(state_->scratch.get() + i * each, size_t(each));
  if (!state_->cpus.empty()) pin(state_->cpus[0]);
  for (int i = 1; i < count_; ++i) state_->threads.emplace_back([this, i] { work(i); });
}

Threads::~Threads() {
  state_->stopping = true;
  state_->epoch.fetch_add(1, std::memory_order_release);
  state_->epoch.notify_all();
  for (std::thread& t : state_->threads) t.join();
}

void Threads::run(FunctionRef<void(int)> f) {
  if (count_ == 1) return f(0);
  state_->job = &f;
  state_->running.store(uint32_t(count_ - 1), std::memory_order_relaxed);
  state_->epoch.fetch_add(1, std::memory_order_release);
  state_->epoch.notify_all();
  f(0);
  for (uint32_t left; (left = state_->running.load(std::memory_order_acquire)) != 0;)
    await_change(state_->running, left, state_->spin_us);
}

void Threads::work(int worker) {
  if (size_t(worker) < state_->cpus.size()) pin(state_->cpus[worker]);
  for (uint32_t seen = 0;;) {
    seen = await_change(state_->epoch, seen, state_->spin_us);
    if (state_->stopping) return;
    (*state_->job)(worker);
    if (state_->running.fetch_sub(1, std::memory_order_acq_rel) == 1) state_->running.notify_one();
  }
}

std::vector<int> usable_cpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) cpus.push_back(i);
  if (cpus.empty()) cpus.push_back(0);
  if (const double quota = cgroup_cpus(); quota < double(cpus.size())) cpus.resize(size_t(quota));
  return cpus;
}

}  // namespace bascule
