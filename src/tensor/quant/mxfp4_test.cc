#include "tensor/quant/mxfp4.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace bascule {
namespace {

TEST(E2m1, ReadsEveryCode) {
  const float magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (uint8_t code = 0; code < 8; ++code) {
    EXPECT_EQ(e2m1_value(code), magnitudes[code]);
    EXPECT_EQ(e2m1_value(code | 8), -magnitudes[code]);
  }
  EXPECT_TRUE(std::signbit(e2m1_value(8)));  // never written by Quark, legal in a file
}

TEST(E8m0, IsAPowerOfTwoOrNan) {
  EXPECT_EQ(e8m0_value(0), 0x1p-127f);
  EXPECT_EQ(e8m0_value(1), 0x1p-126f);
  EXPECT_EQ(e8m0_value(127), 1.0f);
  EXPECT_EQ(e8m0_value(254), 0x1p127f);
  EXPECT_TRUE(std::isnan(e8m0_value(255)));
}

TEST(Mxfp4, EvenColumnsAreLowAndTheLastGroupMayBeCut) {
  // 35 columns: 18 bytes, two groups. Codes count up: column c has code c mod 16.
  const int64_t n_columns = 35;
  std::vector<uint8_t> codes;
  for (int c = 0; c < n_columns; c += 2) codes.push_back(uint8_t(c % 16 | (c + 1) % 16 << 4));
  ASSERT_EQ(int64_t(codes.size()), mxfp4_bytes(n_columns));
  const std::vector<uint8_t> scales = {127, 129};
  std::vector<float> values(n_columns, NAN);
  decode_mxfp4(View<const uint8_t, 2>::packed(codes.data(), {1, mxfp4_bytes(n_columns)}),
               View<const uint8_t, 2>::packed(scales.data(), {1, mxfp4_groups(n_columns)}),
               View<float, 2>::packed(values.data(), {1, n_columns}));
  for (int c = 0; c < n_columns; ++c)
    EXPECT_EQ(values[c], e2m1_value(uint8_t(c % 16)) * (c < 32 ? 1 : 4)) << c;
}

TEST(Mxfp4, TheLargestScalesOverflowToInfinity) {
  const uint8_t codes[] = {0x72}, scales[] = {254};  // 1 and 6
  float values[2];
  decode_mxfp4(View<const uint8_t, 2>::packed(codes, {1, 1}),
               View<const uint8_t, 2>::packed(scales, {1, 1}),
               View<float, 2>::packed(values, {1, 2}));
  EXPECT_EQ(values[0], 0x1p127f);
  EXPECT_EQ(values[1], INFINITY);
}

}  // namespace
}  // namespace bascule
