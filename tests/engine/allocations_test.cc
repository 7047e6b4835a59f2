// A step of the engine allocates nothing once it has warmed up. Also times it: what the engine
// itself costs beside a model, for 64 running sequences.
#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "support/test_engine.h"

namespace {
std::atomic<int64_t> n_allocations = 0;
}  // namespace

void* operator new(size_t size) {
  n_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(size)) return p;
  std::abort();
}
void* operator new(size_t size, std::align_val_t alignment) {
  n_allocations.fetch_add(1, std::memory_order_relaxed);
  const size_t step = size_t(alignment);
  if (void* p = std::aligned_alloc(step, (size + step - 1) / step * step)) return p;
  std::abort();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }

namespace bascule {
namespace {

struct CountingListener final : RequestListener {
  explicit CountingListener(int64_t& n_tokens) : n_tokens(&n_tokens) {}
  Verdict on_token(const TokenEvent&) override {
    ++*n_tokens;
    return Verdict::kGoOn;
  }
  void on_end(const EndEvent&) override {}
  int64_t* n_tokens;
};

// Every kind of sampling there is, one after the other.
SamplingParams sampling_of(int i) {
  switch (i % 4) {
    case 0:
      return {.temperature = 0, .logprobs = true, .top_logprobs = 20};
    case 1:
      return {.top_k = 40, .top_p = 0.9f, .min_p = 0.01f};
    case 2:
      return {.presence_penalty = 0.5f, .repetition_penalty = 1.1f, .logit_bias = {{3, 1.0f}}};
    default:
      return {};
  }
}

void submit(Engine& engine, int n, int64_t n_prompt, int64_t& n_tokens, bool greedily) {
  for (int i = 0; i < n; ++i)
    ASSERT_TRUE(engine
                    .submit({.prompt = std::vector<int32_t>(size_t(n_prompt), 1 + i % 30),
                             .max_tokens = 1000,
                             .sampling = greedily ? greedy() : sampling_of(i)},
                            std::make_unique<CountingListener>(n_tokens))
                    .ok());
}

int64_t allocations_of(Engine& engine, int n_steps) {
  const int64_t before = n_allocations;
  for (int i = 0; i < n_steps; ++i) engine.step();
  return n_allocations - before;
}

// Of this thread, which does all the work here: time on the wall would count other programs.
double cpu_us() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) * 1e6 + double(t.tv_nsec) * 1e-3;
}

TEST(StepAllocations, AreCounted) {
  const int64_t before = n_allocations;
  ::operator delete(::operator new(4));  // a new expression could be optimised away
  EXPECT_EQ(n_allocations - before, 1);
}

TEST(StepAllocations, NoneFor64RunningSequences) {
  for (const bool greedily : {true, false}) {
    TestEngine engine({.model = {.vocab_size = 32, .page_size = 16, .reads_all = false},
                       .n_pages = 64 * 80,
                       .max_context = 1280,
                       .max_batch_tokens = 512,
                       .max_requests = 64,
                       .poison = false});
    int64_t n_tokens = 0;
    submit(*engine, 64, 100, n_tokens, greedily);
    allocations_of(*engine, 40);
    ASSERT_EQ(engine->counts().running, 64);
    n_tokens = 0;
    const double start = cpu_us();
    EXPECT_EQ(allocations_of(*engine, 200), 0);
    const double took_us = (cpu_us() - start) / 200;
    EXPECT_EQ(n_tokens, 64 * 200);
    std::printf("64 sequences, %s: %.1f us of processor a step, fake model included\n",
                greedily ? "greedy" : "mixed sampling", took_us);
  }
}

TEST(StepAllocations, NoneWhilePromptsAreRunAndAnswersPreempted) {
  TestEngine engine({.model = {.vocab_size = 512, .page_size = 4, .reads_all = false},
                     .n_pages = 100,
                     .max_context = 400,
                     .max_batch_tokens = 32,
                     .max_requests = 16,
                     .poison = false});
  int64_t n_tokens = 0;
  for (int i = 0; i < 16; ++i)
    ASSERT_TRUE(engine
                    ->submit({.prompt = std::vector<int32_t>(20, i + 1),
                              .max_tokens = 300,
                              .sampling = greedy()},
                             std::make_unique<CountingListener>(n_tokens))
                    .ok());
  allocations_of(*engine, 100);
  const int64_t preemptions = engine->counts().preemptions;
  EXPECT_EQ(allocations_of(*engine, 2000), 0);
  EXPECT_GT(engine->counts().preemptions, preemptions + 10);
}

}  // namespace
}  // namespace bascule
