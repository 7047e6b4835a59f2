#include "engine/kv/cache.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace bascule {
namespace {

using Tokens = std::vector<int32_t>;

Tokens counting(int64_t n, int32_t first = 0) {
  Tokens tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

KvCache cache_of(int64_t n_pages, bool keeps = true) {
  return KvCache::create({.pool = {.n_pages = n_pages, .max_runs = 8, .max_pages_per_run = n_pages},
                          .page_size = 4,
                          .keeps_prefixes = keeps})
      .value();
}

// A request that runs all its tokens and leaves.
void run_through(KvCache& cache, const Tokens& tokens, std::string_view salt = "") {
  auto start = cache.start(salt, tokens, 0, true);
  ASSERT_TRUE(start);
  cache.publish(start->pages, salt, tokens, start->n_cached);
  cache.publish_last(start->pages, salt, tokens);
  start.reset();
  cache.audit();
}

TEST(KvCache, FindsAllButTheLastTokenAgain) {
  for (const int64_t n : {1, 3, 4, 5, 8, 11, 12, 13}) {
    KvCache cache = cache_of(16);
    run_through(cache, counting(n));
    EXPECT_EQ(cache.pool().n_held(), 0);
    EXPECT_EQ(cache.pool().n_idle(), cache.pages_for(n));
    const auto again = cache.start("", counting(n), 0, true);
    EXPECT_EQ(again->n_cached, n - 1);
    EXPECT_EQ(again->copied_from.is_empty(), (n - 1) % 4 == 0) << n;
    const auto longer = cache.start("", counting(n + 7), 0, true);
    EXPECT_EQ(longer->n_cached, n);
    cache.audit();
  }
}

TEST(KvCache, KeepsNothingWhereItIsOff) {
  KvCache cache = cache_of(8, false);
  run_through(cache, counting(14));
  EXPECT_EQ(cache.pool().n_free(), 8);
  EXPECT_EQ(cache.start("", counting(14), 0, true)->n_cached, 0);
}

TEST(KvCache, ARequestMayRefuseToReuse) {
  KvCache cache = cache_of(8);
  run_through(cache, counting(14));
  EXPECT_EQ(cache.start("", counting(14), 0, false)->n_cached, 0);
}

TEST(KvCache, TwoThatRanTheSameTokensHoldOnePage) {
  KvCache cache = cache_of(8);
  auto a = cache.start("", counting(8), 0, true), b = cache.start("", counting(8), 0, true);
  EXPECT_EQ(cache.pool().n_held(), 4);
  cache.publish(a->pages, "", counting(8), 0);
  cache.publish(b->pages, "", counting(8), 0);
  EXPECT_EQ(cache.pool().n_held(), 2);
  cache.audit();
}

TEST(KvCache, DropsTheLongestUnusedLeafFirst) {
  KvCache cache = cache_of(6);
  run_through(cache, counting(8));               // pages of 0…3 and 4…7
  run_through(cache, {0, 1, 2, 3, 9, 9, 9, 9});  // 0…3, used again, and another child
  run_through(cache, counting(12, 50));          // three pages: all six are in use or idle
  EXPECT_EQ(cache.pool().n_free(), 0);
  {
    const auto taken = cache.start("", counting(4, 90), 0, true);  // drops 4…7
    ASSERT_TRUE(taken);
  }
  EXPECT_EQ(cache.start("", Tokens{0, 1, 2, 3, 9, 9, 9, 9, 1}, 0, true)->n_cached, 8);
  EXPECT_EQ(cache.start("", counting(9), 0, true)->n_cached, 4);
}

// The copy and its source are two pages: where there is room for one, whole pages must do.
TEST(KvCache, CopiesOnlyWhereThereIsRoomForBoth) {
  KvCache cache = cache_of(3);
  run_through(cache, counting(11));
  const auto start = cache.start("", counting(11), 1, true);
  ASSERT_TRUE(start);
  EXPECT_EQ(start->n_cached, 8);
  EXPECT_TRUE(start->copied_from.is_empty());
}

}  // namespace
}  // namespace bascule
