#include "tensor/quant/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace bascule {
namespace {

std::vector<float> rounded(Rounding rounding, std::vector<float> x) {
  round_row(rounding, x.data(), int64_t(x.size()), x.data());
  return x;
}

TEST(Rounding, Int8HasAScaleForEach32) {
  std::vector<float> x(40, 0.25f);
  x[0] = -127;
  x[1] = 2.5f;  // halfway, to the even neighbour
  x[39] = 0;
  const std::vector<float> y = rounded(Rounding::kInt8, x);
  EXPECT_EQ(y[0], -127);
  EXPECT_EQ(y[1], 2);
  EXPECT_EQ(y[2], 0);  // beside 127
  EXPECT_FLOAT_EQ(y[32], 0.25f);
  EXPECT_EQ(y[39], 0);
}

TEST(Rounding, Fp8GroupsHaveAFloorAndFp8TokensAnother) {
  std::vector<float> x(130, 1e-6f);
  x[0] = 448;
  x[1] = 17;  // between 16 and 18, to the even code
  const std::vector<float> y = rounded(Rounding::kFp8Groups, x);
  EXPECT_EQ(y[0], 448);
  EXPECT_EQ(y[1], 16);
  EXPECT_EQ(y[2], 0);
  EXPECT_NEAR(y[128], 1e-6f, 1e-7f);  // its group's scale is 1e-4 / 448
  EXPECT_EQ(rounded(Rounding::kFp8Token, x)[128], 0);
  EXPECT_EQ(rounded(Rounding::kFp8Token, {0, 0, 0})[1], 0);
}

TEST(Rounding, Mxfp4IsAsQuarkRoundsWeights) {
  std::vector<float> x(32, 0);
  x[0] = 7;  // moves the scale to 2
  x[1] = 1.25f;
  x[2] = -0.6f;
  const std::vector<float> y = rounded(Rounding::kMxfp4, x);
  EXPECT_EQ(y[0], 8);  // 3.5, halfway between 3 and 4
  EXPECT_EQ(y[1], 1);
  EXPECT_EQ(y[2], -1);
}

TEST(Rounding, GroupsWithoutNumbersBecomeNan) {
  for (const Rounding rounding :
       {Rounding::kInt8, Rounding::kFp8Groups, Rounding::kFp8Token, Rounding::kMxfp4})
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      std::vector<float> x(300, 1);
      x[5] = bad;
      EXPECT_TRUE(std::isnan(rounded(rounding, x)[0])) << name(rounding);
      EXPECT_EQ(std::isnan(rounded(rounding, x)[299]), rounding == Rounding::kFp8Token);
    }
}

}  // namespace
}  // namespace bascule
