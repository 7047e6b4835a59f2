#include "device/machine.h"

#include <gtest/gtest.h>

namespace bascule {
namespace {

Machine big() {
  return {.processor = "test", .isas = {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}, .n_cpus = 4};
}

TEST(Machine, NarrowsToATargetAndWhatItBuildsOn) {
  EXPECT_EQ(big().narrowed_to("avx2")->isas, (std::vector{Isa::kBaseline, Isa::kAvx2}));
  EXPECT_EQ(big().narrowed_to("avx512")->isas, big().isas);
  EXPECT_EQ(big().narrowed_to("baseline")->isas, std::vector{Isa::kBaseline});
  EXPECT_EQ(big().narrowed_to("auto")->isas, big().isas);
}

TEST(Machine, RefusesATargetItLacksAndListsWhatItHas) {
  const Result<Machine> r = big().narrowed_to("neon");
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.status().message(),
            "--cpu-target neon: this machine (test) has auto, baseline, avx2, avx512");
}

TEST(Machine, DetectsAtLeastTheBaseline) {
  EXPECT_TRUE(Machine::detect().has(Isa::kBaseline));
  EXPECT_GE(Machine::detect().n_cpus, 1);
}

}  // namespace
}  // namespace bascule
