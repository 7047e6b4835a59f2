#include "text/incremental_decoder.h"

#include <gtest/gtest.h>

#include <random>

#include "text/golden_test.h"

namespace bascule {
namespace {

// The deltas of `ids`, `group(i)` tokens at a time.
template <typename Group>
std::vector<std::string> stream(const Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                                SpecialTokens special, Group group) {
  IncrementalDecoder decoder(tokenizer, special);
  std::vector<std::string> deltas;
  for (size_t i = 0; i < ids.size();) {
    deltas.emplace_back();
    for (size_t n = group(); n > 0 && i < ids.size(); --n) decoder.push(ids[i++], deltas.back());
  }
  deltas.emplace_back();
  decoder.finish(deltas.back());
  return deltas;
}

std::string joined(const std::vector<std::string>& deltas) {
  std::string text;
  for (const std::string& delta : deltas) text += delta;
  return text;
}

// Characters split over two tokens came out as replacement characters.
// https://github.com/Luce-Org/lucebox/pull/641
// https://github.com/antonellof/ferrox/issues/124
// https://github.com/exo-explore/exo/pull/1691
// https://github.com/Blaizzy/mlx-vlm/pull/1778
TEST(IncrementalDecoder, NeverShowsAReplacementCharacterForASplitOne) {
  const std::string text = "🙂日本語é👨‍👩‍👧";
  for (const char* kind : {"glm", "fallback"}) {
    const auto tokenizer = load_golden_tokenizer(kind);
    // Byte by byte, the worst split that a model may choose.
    std::vector<int32_t> ids;
    for (const char c : text) ids.push_back(golden_byte_token(*tokenizer, static_cast<uint8_t>(c)));
    std::mt19937 random(3);
    for (int round = 0; round < 50; ++round) {
      const auto group = [&] { return round == 0 ? 1 : 1 + random() % 5; };
      const auto deltas = stream(*tokenizer, ids, SpecialTokens::kKeep, group);
      EXPECT_EQ(joined(deltas), text);
      for (const std::string& delta : deltas) {
        EXPECT_TRUE(is_utf8(delta));
        EXPECT_EQ(delta.find(kReplacementCharacter), std::string::npos) << kind;
      }
    }
  }
}

TEST(IncrementalDecoder, DeltasOfAnyIdsAddUpToTheWholeText) {
  std::mt19937 random(4);
  for (const char* kind : {"glm", "fallback", "words"}) {
    const auto tokenizer = load_golden_tokenizer(kind);
    int n_rows = 0;
    for (const GoldenRow& row : load_golden_rows(kind)) {
      if (row.kind != GoldenRow::kDecode) continue;
      ++n_rows;
      const auto group = [&] { return 1 + random() % 3; };
      const auto kept = stream(*tokenizer, row.ids, SpecialTokens::kKeep, group);
      const auto skipped = stream(*tokenizer, row.ids, SpecialTokens::kSkip, group);
      EXPECT_EQ(joined(kept), row.text);
      EXPECT_EQ(joined(skipped), row.skipped);
      for (const std::string& delta : kept) EXPECT_TRUE(is_utf8(delta));
    }
    EXPECT_EQ(n_rows, 150);
  }
}

TEST(IncrementalDecoder, AnUnfinishedCharacterIsReplacedOnceAtTheEnd) {
  const auto tokenizer = load_golden_tokenizer("glm");
  IncrementalDecoder decoder(*tokenizer);
  std::string text;
  for (const int byte : {0x61, 0xF0, 0x9F, 0x99}) {
    decoder.push(golden_byte_token(*tokenizer, static_cast<uint8_t>(byte)), text);
  }
  EXPECT_EQ(text, "a");
  decoder.finish(text);
  EXPECT_EQ(text, "a\xEF\xBF\xBD");
}

TEST(IncrementalDecoder, AReplacementCharacterInTheTextIsKept) {
  const auto tokenizer = load_golden_tokenizer("glm");
  const std::string text = "x\xEF\xBF\xBD y";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text).value()), text);
}

TEST(IncrementalDecoder, LeavesOutSpecialTokensButNotOtherMarks) {
  const auto tokenizer = load_golden_tokenizer("glm");
  const auto ids = tokenizer->encode_with_special("<|user|>hi<think>so</think>").value();
  EXPECT_EQ(tokenizer->decode(ids), "<|user|>hi<think>so</think>");
  EXPECT_EQ(tokenizer->decode(ids, SpecialTokens::kSkip), "hi<think>so</think>");
}

TEST(IncrementalDecoder, IdsWithoutATokenAddNothing) {
  const auto tokenizer = load_golden_tokenizer("glm");
  const int32_t a = golden_byte_token(*tokenizer, 'a');
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{a, -1, tokenizer->vocab_size(), 2147483647, a}),
            "aa");
}

}  // namespace
}  // namespace bascule
