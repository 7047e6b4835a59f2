#include "apps/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_folder.h"

namespace bascule {
namespace {

using testing::StartsWith;
using Verdict = RequestListener::Verdict;

const Tokenizer& tokenizer() {
  static const auto loaded = Tokenizer::from_json(
      file_bytes(std::filesystem::path(BASCULE_TEST_DATA) / "tokenizer/glm.json"));
  return *loaded.value();
}
const int32_t kThinkEnd = *tokenizer().id_of("</think>");
const int32_t kUser = *tokenizer().id_of("<|user|>");

// An answer that is fed by hand.
struct Fed {
  StopStrings stops;
  std::shared_ptr<Answer> answer;
  std::unique_ptr<RequestListener> listener;
  int64_t n_tokens = 0;

  explicit Fed(AnswerStyle style, std::vector<std::string> stop_strings = {})
      : stops(StopStrings::compile(stop_strings).value()) {
    style.streams = false;
    style.think_end = kThinkEnd;
    answer = std::make_shared<Answer>(style, &tokenizer(), stops);
    listener = answer->listener();
  }
  Verdict token(int32_t id) {
    return listener->on_token({.request = 1, .token = id, .index = n_tokens++});
  }
  Verdict text(std::string_view text) {
    Verdict last = Verdict::kGoOn;
    const std::vector<int32_t> ids = tokenizer().encode(text).value();
    for (const int32_t id : ids) last = token(id);
    return last;
  }
  void end(std::optional<int32_t> stop_token = {}) {
    listener->on_end({.request = 1,
                      .reason = EndReason::kStop,
                      .message = {},
                      .stop_token = stop_token,
                      .n_prompt_tokens = 3,
                      .n_answer_tokens = n_tokens});
  }
};

TEST(Answer, ThinkingStandsApartFromWhatIsSaid) {
  Fed fed({.in_thinking = true});
  fed.text("hm, 3 + 4");
  fed.token(kThinkEnd);
  fed.text("It is 7.");
  fed.end(kUser);
  EXPECT_EQ(fed.answer->printed(), "<think>hm, 3 + 4</think>\nIt is 7.\n");
  EXPECT_EQ(fed.answer->text(), "It is 7.");
  EXPECT_EQ(fed.answer->tokens().back(), kUser);  // a part of the answer, but no text
}

TEST(Answer, ThinkingIsDimOnATerminal) {
  Fed fed({.in_thinking = true, .colour = true});
  fed.text("hm");
  fed.token(kThinkEnd);
  fed.text("7");
  fed.end();
  EXPECT_EQ(fed.answer->printed(), "\x1b[2mhm\x1b[0m\n7\n");
  Fed cut({.in_thinking = true, .colour = true});
  cut.text("hm");
  cut.end();
  EXPECT_EQ(cut.answer->printed(), "\x1b[2mhm\x1b[0m\n");  // the colour never outlives the answer
  EXPECT_EQ(cut.answer->text(), "");
}

TEST(Answer, QuietPrintsTheAnswerAlone) {
  Fed fed({.in_thinking = true, .colour = true, .quiet = true});
  fed.text("hm");
  fed.token(kThinkEnd);
  fed.text("7");
  fed.end();
  EXPECT_EQ(fed.answer->printed(), "7\n");
}

TEST(Answer, StopsBeforeAStopStringWhereverTokensAreCut) {
  Fed fed({}, {"7 apples"});
  EXPECT_EQ(fed.text("He has 7 app"), Verdict::kGoOn);
  EXPECT_EQ(fed.answer->printed(), "He has ");
  EXPECT_EQ(fed.text("les now"), Verdict::kStop);
  fed.end();
  EXPECT_EQ(fed.answer->printed(), "He has \n");
}

TEST(Answer, TextHeldBackForAStopStringComesAtTheEnd) {
  Fed fed({}, {"7 apples"});
  fed.text("He has 7 app");
  fed.end();
  EXPECT_EQ(fed.answer->printed(), "He has 7 app\n");
}

TEST(Answer, IdsArePrintedAsIdsAndStillStop) {
  Fed fed({.as_ids = true}, {"end"});
  fed.token(5);
  fed.token(6);
  EXPECT_EQ(fed.answer->printed(), "5,6");
  EXPECT_EQ(fed.text("end"), Verdict::kStop);
  Fed other({.as_ids = true});
  other.token(5);
  other.end(9);
  EXPECT_EQ(other.answer->printed(), "5,9\n");
  EXPECT_EQ(other.answer->tokens(), (std::vector<int32_t>{5, 9}));
}

TEST(Answer, ACharacterComesWithItsLastToken) {
  Fed fed({});
  const std::vector<int32_t> ids = tokenizer().encode("\xF0\x9F\xA6\x89").value();  // an owl
  ASSERT_GT(ids.size(), 1u);
  fed.token(ids[0]);
  EXPECT_EQ(fed.answer->printed(), "");
  for (size_t i = 1; i < ids.size(); ++i) fed.token(ids[i]);
  EXPECT_EQ(fed.answer->printed(), "\xF0\x9F\xA6\x89");
}

TEST(Answer, LogprobsGoToStandardError) {
  Fed fed({.as_ids = true, .logprobs = true});
  const TokenLogprob top[] = {{5, -0.25f}, {6, -1.5f}};
  testing::internal::CaptureStderr();
  fed.listener->on_token(
      {.request = 1, .token = 5, .index = 0, .logprob = -0.25f, .top_logprobs = top});
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_THAT(line, StartsWith("    0  5 "));
  EXPECT_NE(line.find("-0.2500  | 5 "), std::string::npos) << line;
  EXPECT_NE(line.find("-1.5000\n"), std::string::npos) << line;
}

TEST(Answer, SummaryCountsTokens) {
  Fed fed({});
  fed.text("a");
  fed.end();
  EXPECT_THAT(fed.answer->summary(), StartsWith("[3 prompt tokens, 1 answer tokens, first after "));
  EXPECT_TRUE(fed.answer->summary().ends_with("; ended by stop]"));
}

}  // namespace
}  // namespace bascule
