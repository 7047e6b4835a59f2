#include "serve/answer_text.h"

#include <gtest/gtest.h>

namespace bascule {
namespace {

class AnswerTextTest : public testing::Test {
 protected:
  int32_t id(const char* token) { return tokenizer_->id_of(token).value(); }

  // (reasoning, text) of these tokens.
  std::pair<std::string, std::string> read(const std::vector<int32_t>& tokens,
                                           const StopStrings& stops) {
    AnswerText answer(*tokenizer_, stops, StopText::kCut, {.end = id("</think>"), .is_open = true});
    std::string reasoning, text;
    const auto take = [&](const AnswerText::Added& added) {
      reasoning += added.reasoning;
      text += added.text;
    };
    for (const int32_t token : tokens) take(answer.push(token));
    take(answer.finish());
    return {reasoning, text};
  }

  std::unique_ptr<Tokenizer> tokenizer_ =
      Tokenizer::from_folder(std::string(BASCULE_TEST_DATA) + "/../models/demo").value();
};

TEST_F(AnswerTextTest, ReasoningEndsAtItsTokenAndStopsAreOfTheTextAlone) {
  std::vector<int32_t> tokens = tokenizer_->encode("one, two").value();
  tokens.push_back(id("</think>"));
  const std::vector<int32_t> said = tokenizer_->encode("\n three, four").value();
  tokens.insert(tokens.end(), said.begin(), said.end());
  using Pair = std::pair<std::string, std::string>;
  EXPECT_EQ(read(tokens, {}), Pair("one, two", "three, four"));
  const std::string comma[] = {", f"};
  EXPECT_EQ(read(tokens, StopStrings::compile(comma).value()), Pair("one, two", "three"));
}

TEST_F(AnswerTextTest, WhatNeverLeavesReasoningIsReasoning) {
  const auto [reasoning, text] = read(tokenizer_->encode("hm, hm").value(), {});
  EXPECT_EQ(reasoning, "hm, hm");
  EXPECT_EQ(text, "");
}

}  // namespace
}  // namespace bascule
