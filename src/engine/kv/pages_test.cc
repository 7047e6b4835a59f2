#include "engine/kv/pages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace bascule {
namespace {

PagePool pool_of(int64_t n_pages, int64_t max_runs, int64_t max_pages_per_run) {
  return PagePool::create({n_pages, max_runs, max_pages_per_run}).value();
}

std::vector<int32_t> pages_of(const PagePool& pool, const PageRun& run) {
  std::vector<int32_t> pages;
  for (int64_t i = 0; i < run.n_pages(); ++i) pages.push_back(pool.table()(run.row(), i));
  return pages;
}

TEST(PagePool, DealsEachPageOnceAndAllOrNone) {
  PagePool pool = pool_of(5, 2, 5);
  PageRun a = pool.open(), b = pool.open();
  EXPECT_FALSE(pool.can_open());
  EXPECT_TRUE(pool.extend(a, 3));
  EXPECT_FALSE(pool.extend(b, 3));
  EXPECT_EQ(b.n_pages(), 0);
  EXPECT_EQ(pool.n_free(), 2);
  EXPECT_TRUE(pool.extend(b, 2));
  EXPECT_EQ(pages_of(pool, a), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(pages_of(pool, b), (std::vector<int32_t>{3, 4}));
  EXPECT_EQ(pool.n_held(), 5);
  pool.audit();
}

TEST(PagePool, TakesBackWhatARunLeaves) {
  PagePool pool = pool_of(4, 2, 4);
  PageRun kept = pool.open();
  {
    PageRun run = pool.open();
    ASSERT_TRUE(pool.extend(run, 4));
    kept = std::move(run);  // what `kept` held goes back with `run`
  }
  EXPECT_EQ(kept.n_pages(), 4);
  EXPECT_TRUE(pool.can_open());
  kept = PageRun();
  EXPECT_EQ(pool.n_free(), 4);
  pool.audit();
}

TEST(PagePool, PoisonsPagesOfEveryRankThatAreNotHeld) {
  PagePool pool = pool_of(3, 1, 3);
  std::vector<float> first(3 * 4, 1), second(3 * 4, 1);
  std::byte* const memories[] = {reinterpret_cast<std::byte*>(first.data()),
                                 reinterpret_cast<std::byte*>(second.data())};
  pool.poison_free_pages(memories, 4 * sizeof(float));
  for (const float v : first) EXPECT_TRUE(std::isnan(v));
  {
    PageRun run = pool.open();
    ASSERT_TRUE(pool.extend(run, 2));
    std::fill(first.begin(), first.end(), 2.0f);
    std::fill(second.begin(), second.end(), 2.0f);
  }
  for (const auto& memory : {first, second}) {
    for (int i = 0; i < 8; ++i) EXPECT_TRUE(std::isnan(memory[i]));
    for (int i = 8; i < 12; ++i) EXPECT_EQ(memory[i], 2);  // never held
  }
}

TEST(PagePoolDeathTest, AuditTellsALostPage) {
  PagePool pool = pool_of(3, 1, 3);
  PageRun run = pool.open();
  ASSERT_TRUE(pool.extend(run, 2));
  // Overwritten through the table, as a bug would.
  const_cast<int32_t&>(pool.table()(run.row(), 0)) = 2;
  EXPECT_DEATH(pool.audit(), "n_rows");
  const_cast<int32_t&>(pool.table()(run.row(), 0)) = 0;
  pool.audit();
}

// The pool against a plain model of it (a part of
// https://github.com/vllm-project/vllm/issues/49125: pages under churn).
TEST(PagePool, AgreesWithSetsUnderChurn) {
  const unsigned seed = 20261201;
  std::mt19937 random(seed);
  const auto below = [&](int64_t n) { return int64_t(random() % uint64_t(n)); };
  constexpr int64_t kPages = 37, kRuns = 9;
  PagePool pool = pool_of(kPages, kRuns, kPages);
  std::vector<PageRun> runs;
  std::vector<std::vector<int32_t>> expected;
  for (int round = 0; round < 200000; ++round) {
    const int64_t what = below(10);
    if (what < 2 && pool.can_open()) {
      runs.push_back(pool.open());
      expected.emplace_back();
    } else if (what < 7 && !runs.empty()) {
      const int64_t i = below(int64_t(runs.size())), n = below(5);
      const int64_t n_free = pool.n_free();
      ASSERT_EQ(pool.extend(runs[i], n), n <= n_free) << "seed " << seed << " round " << round;
      const auto now = pages_of(pool, runs[i]);
      ASSERT_TRUE(std::equal(expected[i].begin(), expected[i].end(), now.begin()));
      expected[i] = now;
    } else if (!runs.empty()) {
      const int64_t i = below(int64_t(runs.size()));
      runs.erase(runs.begin() + i);
      expected.erase(expected.begin() + i);
    }
    std::set<int32_t> held;
    size_t n_held = 0;
    for (const auto& pages : expected) {
      held.insert(pages.begin(), pages.end());
      n_held += pages.size();
    }
    ASSERT_EQ(held.size(), n_held) << "seed " << seed << " round " << round;
    ASSERT_EQ(pool.n_held(), int64_t(n_held));
    ASSERT_EQ(pool.n_free(), kPages - int64_t(n_held));
    if (round % 1000 == 0) pool.audit();
  }
}

}  // namespace
}  // namespace bascule
