// 16,384 tokens, far past index_topk, in pieces and at once.
#include <gtest/gtest.h>

#include "engine/setup.h"
#include "support/listeners.h"

namespace bascule {
namespace {

// Greedy answers and log-probabilities of the model's own, in pieces of `budget`.
Answer answer_of(const LoadedModel& model, int64_t budget) {
  const EngineSetup setup = plan_engine(model, {.max_context = 16384 + 16,
                                                .kv_tokens = 16384 + 16,
                                                .max_batch_tokens = budget,
                                                .max_requests = 1,
                                                .poisons_pages = true})
                                .value();
  const auto engine = make_engine(model, setup).value();
  RequestSpec spec{.max_tokens = 8,
                   .ignore_eos = true,
                   .sampling = {.temperature = 0, .logprobs = true, .top_logprobs = 20}};
  for (int64_t i = 0; i < 16384; ++i) spec.prompt.push_back(int32_t((i * i * 7 + i * 3) % 511));
  Answer answer;
  EXPECT_TRUE(engine->submit(std::move(spec), std::make_unique<KeepingListener>(answer)).ok());
  engine->run_until_idle();
  return answer;
}

TEST(LongPrompt, IsTheSameInPiecesAndAtOnce) {
  const auto model =
      load_model(std::filesystem::path(BASCULE_TEST_DATA) / "golden/glm-moe-dsa-tiny",
                 {.latent_norm_eps = 1e-6f, .index_norm_eps = 1e-6f, .max_positions = 1 << 15})
          .value();
  const Answer whole = answer_of(*model, 16384);
  const Answer pieces = answer_of(*model, 500);
  EXPECT_EQ(whole.tokens.size(), 8u);
  EXPECT_EQ(whole.tokens, pieces.tokens);
  for (size_t i = 0; i < 8; ++i)
    for (size_t j = 0; j < 20; ++j) {
      EXPECT_EQ(whole.top_logprobs[i][j].token, pieces.top_logprobs[i][j].token);
      EXPECT_EQ(whole.top_logprobs[i][j].logprob, pieces.top_logprobs[i][j].logprob);
    }
}

}  // namespace
}  // namespace bascule
