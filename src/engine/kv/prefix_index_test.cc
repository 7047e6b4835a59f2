#include "engine/kv/prefix_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace bascule {
namespace {

constexpr int32_t kNone = PrefixIndex::kNone;
using Tokens = std::vector<int32_t>;

TEST(PrefixIndex, FindsWholePagesAndThenTheLongestPart) {
  PrefixIndex index(8, 4);
  index.insert("", kNone, Tokens{1, 2, 3, 4}, 0);
  index.insert("", 0, Tokens{5, 6, 7, 8}, 1);
  index.insert("", 0, Tokens{5, 6, 9, 9}, 2);
  index.insert("", 2, Tokens{1, 1}, 3);
  const auto find = [&](const Tokens& tokens) {
    const PrefixIndex::Hit hit = index.find("", tokens);
    return std::tuple(hit.last_page, hit.n_pages, hit.partial_page, hit.n_partial);
  };
  EXPECT_EQ(find({1, 2, 3, 4, 5, 6, 7, 8}), std::tuple(1, 2, kNone, 0));
  EXPECT_EQ(find({1, 2, 3, 4, 5, 6, 7, 8, 1}), std::tuple(1, 2, kNone, 0));
  EXPECT_EQ(find({1, 2, 3, 4, 5, 6, 7}), std::tuple(0, 1, 1, 3));
  EXPECT_EQ(find({1, 2, 3, 4, 5, 6, 9, 0}), std::tuple(0, 1, 2, 3));
  EXPECT_EQ(find({1, 2, 3, 4, 5, 6, 9, 9, 1, 1, 1, 1}), std::tuple(2, 2, 3, 2));
  EXPECT_EQ(find({1, 2, 9, 4}), std::tuple(kNone, 0, 0, 2));
  EXPECT_EQ(find({2, 2, 3, 4}), std::tuple(kNone, 0, kNone, 0));
  EXPECT_EQ(find({}), std::tuple(kNone, 0, kNone, 0));
}

TEST(PrefixIndex, KeepsOnePageForTheSameTokens) {
  PrefixIndex index(8, 4);
  EXPECT_EQ(index.insert("", kNone, Tokens{1, 2, 3, 4}, 0).page, 0);
  EXPECT_EQ(index.insert("", kNone, Tokens{1, 2, 3, 4}, 1).page, 0);
  EXPECT_EQ(index.insert("", kNone, Tokens{1, 2}, 2).page, 0);  // page 0 has those rows too
  EXPECT_EQ(index.insert("", 0, Tokens{5, 6}, 3).page, 3);
  const PrefixIndex::Inserted longer = index.insert("", 0, Tokens{5, 6, 7}, 4);
  EXPECT_EQ(longer.page, 4);
  EXPECT_EQ(longer.redundant, 3);
  EXPECT_EQ(index.n_pages(), 3);
  index.forget(3);
  EXPECT_EQ(index.find("", Tokens{1, 2, 3, 4, 5, 6}).partial_page, 4);
}

TEST(PrefixIndex, HoldsTheTokensOfSaltsApart) {
  PrefixIndex index(4, 2);
  index.insert("a", kNone, Tokens{1, 2}, 0);
  index.insert("b", kNone, Tokens{1, 2}, 1);
  EXPECT_EQ(index.find("a", Tokens{1, 2}).last_page, 0);
  EXPECT_EQ(index.find("b", Tokens{1, 2}).last_page, 1);
  EXPECT_EQ(index.find("", Tokens{1, 2}).last_page, kNone);
  EXPECT_EQ(index.find("ab", Tokens{1, 2}).last_page, kNone);
}

// Against a list of every beginning, over an alphabet so small that all kinds of overlap occur.
TEST(PrefixIndex, AgreesWithAListOfBeginnings) {
  const unsigned seed = 20261204;
  std::mt19937 random(seed);
  const auto below = [&](int n) { return int(random() % unsigned(n)); };
  constexpr int kPages = 60, kSize = 3;
  PrefixIndex index(kPages, kSize);
  std::map<int32_t, Tokens> sequence_of;  // each page's, from the start
  for (int round = 0; round < 40000; ++round) {
    Tokens tokens;
    for (int n = 1 + below(9); n > 0; --n) tokens.push_back(below(2));
    const PrefixIndex::Hit hit = index.find("", tokens);
    size_t longest = 0, whole = 0;
    for (const auto& [page, known] : sequence_of) {
      const size_t n = size_t(std::ranges::mismatch(known, tokens).in1 - known.begin());
      longest = std::max(longest, n);
      if (n == known.size() && n % kSize == 0) whole = std::max(whole, n);
    }
    ASSERT_EQ(size_t(hit.n_pages * kSize), whole) << "seed " << seed << " round " << round;
    ASSERT_EQ(size_t(hit.n_pages * kSize + hit.n_partial), longest);
    // The next page of these tokens, if it isn't known, becomes a child of the hit.
    const size_t n_more = std::min<size_t>(kSize, tokens.size() - whole);
    int32_t page = 0;
    while (sequence_of.contains(page)) ++page;
    if (n_more > 0 && page < kPages) {
      const auto inserted =
          index.insert("", hit.last_page, std::span(tokens).subspan(whole, n_more), page);
      if (inserted.page == page)
        sequence_of[page] = Tokens(tokens.begin(), tokens.begin() + int64_t(whole + n_more));
      ASSERT_EQ(inserted.page == page, longest < whole + n_more);
      if (inserted.redundant != kNone) {
        index.forget(inserted.redundant);
        sequence_of.erase(inserted.redundant);
      }
    }
    // Some leaf goes.
    if (below(2) == 0 && !sequence_of.empty()) {
      const auto victim = std::next(sequence_of.begin(), below(int(sequence_of.size())));
      const bool is_leaf = std::ranges::none_of(
          sequence_of, [&](const auto& s) { return index.parent_of(s.first) == victim->first; });
      if (is_leaf) {
        index.forget(victim->first);
        sequence_of.erase(victim);
      }
    }
    ASSERT_EQ(index.n_pages(), int64_t(sequence_of.size()));
  }
}

}  // namespace
}  // namespace bascule
