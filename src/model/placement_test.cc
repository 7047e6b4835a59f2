#include "model/placement.h"

#include <gtest/gtest.h>

namespace bascule {
namespace {

ModelConfig shape() {
  ModelConfig c;
  c.n_heads = 4, c.d_model = 64, c.d_expert = 32, c.d_dense = 64, c.n_experts = 10;
  return c;
}

TEST(Placement, PartsCoverEverythingOnce) {
  for (const int64_t n : {1, 4, 7, 10, 257})
    for (const int parts : {1, 2, 3, 8}) {
      int64_t next = 0;
      for (int i = 0; i < parts; ++i) {
        EXPECT_EQ(part_of(n, parts, i).begin, next);
        next = part_of(n, parts, i).end;
      }
      EXPECT_EQ(next, n);
    }
}

TEST(Placement, RanksOfAGroupAreNeighbours) {
  const Layout layout{.tp = 2, .ep = 1, .dp = 2};
  ASSERT_EQ(layout.world(), 4);
  const int group[] = {0, 0, 1, 1}, tp_rank[] = {0, 1, 0, 1};
  for (int r = 0; r < 4; ++r) {
    EXPECT_EQ(Placement(layout, r).group(), group[r]);
    EXPECT_EQ(Placement(layout, r).tp_rank(), tp_rank[r]);
    EXPECT_EQ(Placement(layout, r).speaks_for_group(), r % 2 == 0);
  }
}

TEST(Placement, ExpertsAloneSpreadOverRanksThatShareOneBatch) {
  const Layout layout{.ep = 4};
  ASSERT_EQ(layout.world(), 4);
  for (int r = 0; r < 4; ++r) {
    const Placement p(layout, r);
    EXPECT_EQ(p.group(), 0);
    EXPECT_EQ(p.tp_part(8).size(), 8);
    for (int64_t e = p.experts(10).begin; e < p.experts(10).end; ++e)
      EXPECT_EQ(p.expert_owner(e, 10), r);
  }
}

TEST(Layout, RefusesWhatTheModelCannotBeCutInto) {
  EXPECT_TRUE(validate({.tp = 4}, shape()).ok());
  EXPECT_TRUE(validate({.tp = 2, .ep = 4, .dp = 2}, shape()).ok());
  EXPECT_EQ(validate({.tp = 5}, shape()).message(),
            "--tp 5: this model can be cut in at most 4 (4 attention heads)");
  EXPECT_EQ(validate({.ep = 11}, shape()).message(), "--ep 11: this model has 10 experts a layer");
  EXPECT_FALSE(validate({.tp = 2, .ep = 3}, shape()).ok());
  EXPECT_FALSE(validate({.dp = 0}, shape()).ok());
}

}  // namespace
}  // namespace bascule
