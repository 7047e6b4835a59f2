// What must not change an answer, does not: on a real model, by bits. Each test runs the tiny
// checkpoint, whose every position past the 24th is sparse, under reference rows in float32, under
// fast rows in float32, and under fast rows with bf16 activations and cache.
#include <gtest/gtest.h>

#include <map>

#include "engine/setup.h"
#include "support/listeners.h"

namespace bascule {
namespace {

const LoadedModel& tiny() {
  static const auto model =
      load_model(std::filesystem::path(BASCULE_TEST_DATA) / "golden/glm-moe-dsa-tiny",
                 {.latent_norm_eps = 1e-6f, .index_norm_eps = 1e-6f})
          .value();
  return *model;
}

struct Outcome final : RowRecorder {
  Answer answer;
  std::map<int64_t, std::vector<float>> logits;  // by position

  void on_hidden(int64_t, int64_t, View<const float, 1>) override {}
  void on_logits(int64_t position, View<const float, 1> row) override {
    logits[position].assign(row.data, row.data + row.size());
  }
};

// Every token and every logit, by bits.
void expect_same(const Outcome& a, const Outcome& b, const std::string& what) {
  EXPECT_EQ(a.answer.tokens, b.answer.tokens) << what;
  ASSERT_EQ(a.logits.size(), b.logits.size()) << what;
  for (const auto& [position, row] : a.logits)
    ASSERT_EQ(row, b.logits.at(position)) << what << ", position " << position;
}

RequestSpec request(int64_t n_prompt, int64_t n_answer, int32_t variant = 0) {
  RequestSpec spec{.max_tokens = n_answer, .ignore_eos = true, .sampling = {.seed = 11}};
  for (int64_t i = 0; i < n_prompt; ++i)
    spec.prompt.push_back(int32_t((i * i * 31 + i * 17 + variant * 101 + 3) % 512));
  if (variant % 2 == 0) spec.sampling = {.temperature = 0};
  return spec;
}

struct Numerics {
  KernelMode kernels;
  Dtype activations;
};

class Equalities : public testing::TestWithParam<Numerics> {
 protected:
  // An engine over the tiny model, and what its watched requests gave.
  class Run {
   public:
    explicit Run(EngineOptions o) {
      o.kernels = GetParam().kernels;
      o.activations = GetParam().activations;
      o.poisons_pages = true;
      o.max_context = 256;
      if (o.n_threads == 0) o.n_threads = 1;
      if (o.kv_tokens == 0) o.kv_tokens = 2048;
      if (o.max_requests == 64) o.max_requests = 8;
      if (o.max_logit_rows == 0) o.max_logit_rows = std::max<int64_t>(o.max_batch_tokens, 8);
      setup_.emplace(plan_engine(tiny(), o).value());
      engine_ = make_engine(tiny(), *setup_).value();
    }
    ~Run() { engine_->stop(); }  // before what its listeners write to

    Outcome& ask(RequestSpec spec) {
      outcomes_.push_back(std::make_unique<Outcome>());
      Outcome& outcome = *outcomes_.back();
      spec.recorder = &outcome;
      outcome.answer.id =
          engine_->submit(std::move(spec), std::make_unique<KeepingListener>(outcome.answer))
              .value();
      return outcome;
    }
    Engine& engine() { return *engine_; }
    const Outcome& finish(const Outcome& outcome) {
      engine_->run_until_idle();
      return outcome;
    }

   private:
    std::optional<EngineSetup> setup_;
    std::unique_ptr<Engine> engine_;
    std::vector<std::unique_ptr<Outcome>> outcomes_;
  };

  // The request alone, its prompt in one piece, on one rank and one thread.
  static const Outcome& alone(const RequestSpec& spec) {
    static std::map<std::pair<int, std::vector<int32_t>>, std::unique_ptr<Run>> runs;
    static std::map<std::pair<int, std::vector<int32_t>>, const Outcome*> outcomes;
    std::vector<int32_t> tokens = spec.prompt;
    tokens.push_back(int32_t(*spec.max_tokens));
    const std::pair key(int(GetParam().kernels) * 100 + int(GetParam().activations), tokens);
    if (!runs.contains(key)) {
      runs[key] = std::make_unique<Run>(EngineOptions{});
      outcomes[key] = &runs[key]->finish(runs[key]->ask(spec));
    }
    return *outcomes[key];
  }
};

TEST_P(Equalities, PrefillInOnePieceInChunksAndTokenByToken) {
  const Outcome& whole = alone(request(100, 12));
  ASSERT_EQ(whole.logits.size(), 111u);
  for (const int64_t budget : {1, 7, 33}) {
    Run run({.max_batch_tokens = budget, .max_requests = 1});
    expect_same(run.finish(run.ask(request(100, 12))), whole,
                "pieces of " + std::to_string(budget));
  }
}

TEST_P(Equalities, AloneAndInAMixedBatch) {
  Run run({.max_batch_tokens = 24});
  std::vector<const Outcome*> together;
  for (int i = 0; i < 3; ++i) together.push_back(&run.ask(request(5 + 30 * i, 20 - 3 * i, i)));
  for (int i = 0; i < 6; ++i) run.engine().step();  // some decode while the next prefill
  for (int i = 3; i < 6; ++i) together.push_back(&run.ask(request(11 * i - 30, 25, i)));
  run.engine().run_until_idle();
  for (int i = 0; i < 6; ++i)
    expect_same(*together[i],
                alone(i < 3 ? request(5 + 30 * i, 20 - 3 * i, i) : request(11 * i - 30, 25, i)),
                "request " + std::to_string(i));
}

TEST_P(Equalities, CancelledNeighboursChangeNothing) {
  Run run({.max_batch_tokens = 16});
  const Outcome& before = run.ask(request(60, 30, 1));
  const Outcome& kept = run.ask(request(50, 20, 2));
  const Outcome& after = run.ask(request(70, 30, 3));
  const Outcome& waiting = run.ask(request(9, 30, 4));
  for (int i = 0; i < 9; ++i) run.engine().step();
  for (const Outcome* o : {&before, &after, &waiting}) run.engine().cancel(o->answer.id);
  const Outcome& later = run.ask(request(40, 10, 5));  // into the pages they left
  run.engine().run_until_idle();
  EXPECT_EQ(before.answer.end->reason, EndReason::kCancelled);
  expect_same(kept, alone(request(50, 20, 2)), "the neighbour");
  expect_same(later, alone(request(40, 10, 5)), "the successor");
}

TEST_P(Equalities, PreemptedAndResumedAndUninterrupted) {
  Run run({.kv_tokens = 160, .max_batch_tokens = 40});
  std::vector<const Outcome*> together;
  for (int i = 0; i < 3; ++i) together.push_back(&run.ask(request(30 + i, 50, i)));
  run.engine().run_until_idle();
  EXPECT_GT(run.engine().counts().preemptions, 0);
  for (int i = 0; i < 3; ++i)
    expect_same(*together[i], alone(request(30 + i, 50, i)), "request " + std::to_string(i));
}

// As request(n_prompt, ..., variant), but its first n_alike tokens are those of variant 0.
RequestSpec forked(int64_t n_prompt, int64_t n_alike, int64_t n_answer, int32_t variant) {
  RequestSpec spec = request(n_prompt, n_answer, variant);
  const RequestSpec stem = request(n_prompt, n_answer);
  std::copy_n(stem.prompt.begin(), n_alike, spec.prompt.begin());
  return spec;
}

// Every token, and the logits of every position that was run: those after the cached ones.
void expect_same_end(const Outcome& warm, const Outcome& cold, const std::string& what) {
  EXPECT_EQ(warm.answer.tokens, cold.answer.tokens) << what;
  EXPECT_EQ(warm.logits.size() + size_t(warm.answer.end->n_cached_tokens), cold.logits.size())
      << what;
  for (const auto& [position, row] : warm.logits)
    ASSERT_EQ(row, cold.logits.at(position)) << what << ", position " << position;
}

// Lengths around pages (16) and index_topk (24). Parts of
// https://github.com/Wenyueh/MinivLLM/pull/98, https://github.com/tenstorrent/vllm/issues/415 and
// https://github.com/inference-sim/inference-sim/issues/196.
TEST_P(Equalities, AfterACachedPrefixAndFromTheFirstToken) {
  for (const int64_t budget : {9, 64}) {
    Run run({.max_batch_tokens = budget});
    run.finish(run.ask(request(100, 1)));
    for (const int64_t n_alike : {1, 15, 16, 17, 23, 24, 25, 32, 63, 99}) {
      const RequestSpec spec = forked(100, n_alike, 4, int32_t(n_alike));
      const Outcome& warm = run.finish(run.ask(spec));
      EXPECT_EQ(warm.answer.end->n_cached_tokens, n_alike);
      expect_same_end(warm, alone(spec), "alike " + std::to_string(n_alike));
    }
    // The whole prompt: the last token is run for its logits.
    const Outcome& whole = run.finish(run.ask(request(100, 12)));
    EXPECT_EQ(whole.answer.end->n_cached_tokens, 99);
    expect_same_end(whole, alone(request(100, 12)), "the same prompt");
  }
}

TEST_P(Equalities, CachedPrefixesInMixedBatchesAndUnderPreemption) {
  Run run({.kv_tokens = 256, .max_batch_tokens = 24, .max_requests = 6});
  std::vector<std::pair<RequestSpec, const Outcome*>> asked;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 6; ++i) {
      asked.emplace_back(forked(40 + i, 7 * i + round, 30, i + 1), nullptr);
      asked.back().second = &run.ask(asked.back().first);
    }
    for (int i = 0; i < 20; ++i) run.engine().step();
  }
  run.engine().run_until_idle();
  EXPECT_GT(run.engine().counts().preemptions, 0);
  EXPECT_GT(run.engine().counts().rows_found, 100);
  for (const auto& [spec, outcome] : asked) {
    EXPECT_EQ(outcome->answer.tokens, alone(spec).answer.tokens);
    for (const auto& [position, row] : outcome->logits)
      ASSERT_EQ(row, alone(spec).logits.at(position)) << "position " << position;
  }
}

TEST_P(Equalities, OneRankAndSeveral) {
  const Layout layouts[] = {{.tp = 2},          {.tp = 4},          {.ep = 2},
                            {.ep = 4},          {.dp = 2},          {.tp = 2, .dp = 2},
                            {.ep = 2, .dp = 2}, {.tp = 2, .ep = 2}, {.tp = 2, .ep = 4, .dp = 2},
                            {.tp = 3}};
  for (const Layout& layout : layouts) {
    Run run({.layout = layout, .max_batch_tokens = 16});
    std::vector<const Outcome*> together;
    for (int i = 0; i < 3; ++i) together.push_back(&run.ask(request(40 - 11 * i, 6, i)));
    run.engine().run_until_idle();
    for (int i = 0; i < 3; ++i)
      expect_same(*together[i], alone(request(40 - 11 * i, 6, i)),
                  "tp " + std::to_string(layout.tp) + " ep " + std::to_string(layout.ep) + " dp " +
                      std::to_string(layout.dp) + ", request " + std::to_string(i));
  }
}

TEST_P(Equalities, OneThreadAndSeveral) {
  Run run({.n_threads = 3, .max_batch_tokens = 50});
  expect_same(run.finish(run.ask(request(100, 12))), alone(request(100, 12)), "three threads");
}

INSTANTIATE_TEST_SUITE_P(Tiny, Equalities,
                         testing::Values(Numerics{KernelMode::kReference, Dtype::kF32},
                                         Numerics{KernelMode::kFast, Dtype::kF32},
                                         Numerics{KernelMode::kFast, Dtype::kBf16}),
                         [](const auto& info) {
                           return std::string(info.param.kernels == KernelMode::kReference
                                                  ? "Reference"
                                                  : "Fast") +
                                  (info.param.activations == Dtype::kF32 ? "F32" : "Bf16");
                         });

}  // namespace
}  // namespace bascule
