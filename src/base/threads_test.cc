#include "base/threads.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace bascule {
namespace {

TEST(Threads, RangesCoverEachIndexOnce) {
  for (const int count : {1, 2, 3, 5}) {
    Threads threads({.count = count, .spin_us = 1});
    for (const int64_t n : {0, 1, 2, 7, 64, 1000}) {
      for (const int64_t grain : {1, 8, 33}) {
        std::vector<int> hits(n);
        threads.ranges(n, grain, [&](int64_t begin, int64_t end, int worker) {
          EXPECT_LT(worker, count);
          EXPECT_EQ(begin % grain, 0);
          for (int64_t i = begin; i < end; ++i) ++hits[i];
        });
        for (const int h : hits) EXPECT_EQ(h, 1);
      }
    }
  }
}

TEST(Threads, TasksAreHandedOutOnce) {
  Threads threads({.count = 3});
  std::vector<std::atomic<int>> hits(997);
  threads.tasks(997, [&](int64_t i, int) { hits[i].fetch_add(1); });
  for (const auto& h : hits) EXPECT_EQ(h.load(), 1);
}

TEST(Threads, ManyShortJobsSeeEachOthersWrites) {
  Threads threads({.count = 4, .spin_us = 0});
  std::vector<int64_t> values(4);
  for (int round = 0; round < 2000; ++round)
    threads.run([&](int worker) { values[worker] += round; });
  for (const int64_t v : values) EXPECT_EQ(v, 1999 * 2000 / 2);
}

TEST(Threads, ScratchIsSeparateAndAligned) {
  Threads threads({.count = 3, .scratch_bytes = 100});
  for (int i = 0; i < 3; ++i) {
    EXPECT_GE(threads.scratch(i).size(), 100u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(threads.scratch(i).data()) % 64, 0u);
    std::memset(threads.scratch(i).data(), i, threads.scratch(i).size());
  }
  EXPECT_EQ(threads.scratch(1)[99], std::byte{1});
}

TEST(UsableCpus, IsNeverEmpty) { EXPECT_GE(usable_cpus().size(), 1u); }

}  // namespace
}  // namespace bascule
