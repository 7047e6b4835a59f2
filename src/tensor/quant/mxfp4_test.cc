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

// Which of three rules makes the scale was told apart nowhere:
// https://github.com/ROCm/aiter/pull/3212, https://github.com/pytorch/ao/pull/4725,
// https://github.com/microsoft/microxcaling/issues/4. Here each has its table.
TEST(Mxfp4Scale, EachRuleHasItsTable) {
  struct Row {
    float largest;
    int even, floor, ceil;
  };
  const Row rows[] = {{0, 1, 1, 1},
                      {0x1p-149f, 1, 1, 1},
                      {0x1p-126f, 1, 1, 1},
                      {0.01f, 118, 118, 119},
                      {1, 125, 125, 125},
                      {1.5f, 125, 125, 126},
                      {1.7499f, 125, 125, 126},
                      {1.75f, 126, 125, 126},
                      {3.5f, 127, 126, 127},
                      {3.999999f, 127, 126, 127},
                      {4, 127, 127, 127},
                      {5.99f, 127, 127, 128},
                      {6, 127, 127, 128},
                      {6.0001f, 127, 127, 128},
                      {6.9f, 127, 127, 128},
                      {7, 128, 127, 128},
                      {7.9999f, 128, 127, 128},
                      {8, 128, 128, 128},
                      {448, 134, 133, 134},
                      {0x1.fffffep127f, 253, 252, 253}};
  for (const Row& row : rows) {
    EXPECT_EQ(mxfp4_scale(row.largest, Mxfp4Scale::kEven), row.even) << row.largest;
    EXPECT_EQ(mxfp4_scale(row.largest, Mxfp4Scale::kFloor), row.floor) << row.largest;
    EXPECT_EQ(mxfp4_scale(row.largest, Mxfp4Scale::kCeil), row.ceil) << row.largest;
  }
}

TEST(Mxfp4Scale, CeilNeverCutsAndEvenCutsASeventhAtMost) {
  for (float a = 0x1p-120f; a < 0x1p120f; a *= 1.0173f) {
    EXPECT_LE(a / e8m0_value(mxfp4_scale(a, Mxfp4Scale::kCeil)), 4);
    EXPECT_LT(a / e8m0_value(mxfp4_scale(a, Mxfp4Scale::kEven)), 7);
    EXPECT_LT(a / e8m0_value(mxfp4_scale(a, Mxfp4Scale::kFloor)), 8);
  }
}

TEST(E2m1, TiesGoToTheEvenCodeAndZeroHasNoSign) {
  const float ties[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5};
  const int codes[] = {0, 2, 2, 4, 4, 6, 6};
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(e2m1_code(ties[i]), codes[i]);
    EXPECT_EQ(e2m1_code(std::nextafter(ties[i], 0.0f)), i) << "below a tie";
    EXPECT_EQ(e2m1_code(std::nextafter(ties[i], 8.0f)), i + 1) << "above a tie";
  }
  EXPECT_EQ(e2m1_code(-0.0f), 0);
  EXPECT_EQ(e2m1_code(-0.25f), 0);
  EXPECT_EQ(e2m1_code(-0.26f), 9);
  EXPECT_EQ(e2m1_code(1e30f), 7);
  EXPECT_EQ(e2m1_code(-1e30f), 15);
}

std::vector<uint8_t> encoded(const std::vector<float>& row, uint8_t scale) {
  const auto n_columns = int64_t(row.size());
  std::vector<uint8_t> codes(size_t(mxfp4_bytes(n_columns)), 0xff);
  std::vector<uint8_t> scales(size_t(mxfp4_groups(n_columns)), 0xff);
  encode_mxfp4(View<const float, 2>::packed(row.data(), {1, n_columns}), Mxfp4Scale::kEven,
               View<uint8_t, 2>::packed(codes.data(), {1, int64_t(codes.size())}),
               View<uint8_t, 2>::packed(scales.data(), {1, int64_t(scales.size())}));
  for (const uint8_t s : scales) EXPECT_EQ(s, scale);
  return codes;
}

// The group that docs/formats.md spells out; AMD Quark 0.13 wrote these bytes for it.
TEST(Mxfp4, AWholeGroupIsWhatQuarkWrites) {
  const std::vector<float> row = {0,    .1f,   -.25f,  .26f, .5f,  -.74f, .75f, .76f,
                                  1,    1.25f, -1.25f, 1.3f, 1.5f, 1.75f, 2,    2.4f,
                                  2.5f, -2.6f, 3,      3.4f, 3.5f, 3.6f,  4,    -4.9f,
                                  5,    5.1f,  6,      -6,   .2f,  -.3f,  .9f,  -1.1f};
  EXPECT_EQ(encoded(row, 127),
            (std::vector<uint8_t>{0x00, 0x10, 0x91, 0x22, 0x22, 0x3a, 0x43, 0x44, 0xd4, 0x55, 0x66,
                                  0xe6, 0x76, 0xf7, 0x90, 0xa2}));
}

// Neighbours were swapped between tools: https://github.com/triton-lang/triton/pull/5197,
// https://github.com/ROCm/composable_kernel/pull/1889.
TEST(Mxfp4, TheEvenColumnIsInTheLowFourBits) {
  EXPECT_EQ(encoded({0, .5f, 1, 1.5f, 2, 3, 4, 6}, 127),
            (std::vector<uint8_t>{0x10, 0x32, 0x54, 0x76}));
  EXPECT_EQ(encoded({-.5f, -1, -1.5f, -2, -3, -4, -6}, 127),
            (std::vector<uint8_t>{0xa9, 0xcb, 0xed, 0x0f}));
}

// A group of zeros was 0 / 0: https://github.com/THUDM/slime/pull/2256,
// https://github.com/intel/auto-round/issues/1908.
TEST(Mxfp4, AGroupOfZerosIsZeros) {
  EXPECT_EQ(encoded(std::vector<float>(64, -0.0f), 1), std::vector<uint8_t>(32, 0));
}

}  // namespace
}  // namespace bascule
