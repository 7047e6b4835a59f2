#include "engine/engine.h"

#include <gtest/gtest.h>

#include <numeric>

#include "support/test_engine.h"

namespace bascule {
namespace {

TEST(Engine, AnswersARequest) {
  TestEngine engine({});
  const Answer& a = engine.ask({.prompt = {5, 6, 7}, .max_tokens = 12, .sampling = greedy()});
  engine->run_until_idle();
  EXPECT_EQ(a.tokens, engine.expected({5, 6, 7}, 12));
  ASSERT_TRUE(a.end);
  EXPECT_EQ(a.end->reason, EndReason::kLength);
  EXPECT_EQ(a.end->n_prompt_tokens, 3);
  EXPECT_EQ(a.end->n_answer_tokens, 12);
}

}  // namespace
}  // namespace bascule
