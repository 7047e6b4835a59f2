#include "tensor/quant/fp8_row.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tensor/bf16.h"

namespace bascule {
namespace {

TEST(Fp8Row, EachRowHasItsScale) {
  const uint8_t codes[] = {0x38, 0xbc, 0x7e, 0x38, 0x80, 0x01};  // 1, -1.5, 448 | 1, -0, 2^-9
  const float scales[] = {2, 0.1f};
  float values[6];
  decode_fp8_rows(View<const uint8_t, 2>::packed(codes, {2, 3}),
                  View<const float, 1>::packed(scales, {2}),
                  View<float, 2>::packed(values, {2, 3}));
  EXPECT_EQ(values[0], 2.0f);
  EXPECT_EQ(values[1], -3.0f);
  EXPECT_EQ(values[2], 896.0f);
  EXPECT_EQ(values[3], 0.1f);
  EXPECT_TRUE(std::signbit(values[4]));
  EXPECT_EQ(values[5], 0x1p-9f * 0.1f);
}

std::vector<uint8_t> encoded(const std::vector<float>& row, Dtype stored, float scale) {
  std::vector<uint8_t> codes(row.size(), 0xff);
  float written = 0;
  encode_fp8_rows(View<const float, 2>::packed(row.data(), {1, int64_t(row.size())}), stored,
                  View<uint8_t, 2>::packed(codes.data(), {1, int64_t(row.size())}),
                  View<float, 1>::packed(&written, {1}));
  EXPECT_EQ(written, scale);
  return codes;
}

TEST(Fp8Row, IsRoundedInTheStoredType) {
  const float scale = 3.0f / 448;
  EXPECT_EQ(encoded({3, 1.26171875f}, Dtype::kF32, scale)[1], fp8_e4m3_code(1.26171875f / scale));
  int n_differ = 0;
  for (int i = 0; i < 1000; ++i) {
    const float w = rounded_to_bf16(0.003f * float(i));
    const uint8_t code = encoded({3, w}, Dtype::kBf16, scale)[1];
    const float quotient = rounded_to_bf16(w / rounded_to_bf16(scale));
    EXPECT_EQ(code, fp8_e4m3_code(quotient));
    n_differ += code != fp8_e4m3_code(w / scale);
  }
  EXPECT_GT(n_differ, 5);
  EXPECT_LT(n_differ, 100);
}

TEST(Fp8Row, ARowOfZerosHasTheLeastScaleAndKeepsSigns) {
  EXPECT_EQ(encoded({0, -0.0f}, Dtype::kBf16, 0x1p-23f), (std::vector<uint8_t>{0, 0x80}));
}

TEST(Fp8Row, KnowsHalfPrecision) {
  EXPECT_EQ(rounded_to(Dtype::kF16, 1 + 0x1p-11f), 1.0f);
  EXPECT_EQ(rounded_to(Dtype::kF16, 1 + 0x1.8p-10f), 1 + 0x1p-9f);
  EXPECT_EQ(rounded_to(Dtype::kF16, 0x1.8p-24f), 0x1p-23f);  // subnormal, a tie
  EXPECT_EQ(rounded_to(Dtype::kF16, -0x1p-26f), 0.0f);
  EXPECT_EQ(rounded_to(Dtype::kF16, 65519), 65504.0f);
  EXPECT_EQ(rounded_to(Dtype::kF16, 65520), INFINITY);
  for (int bits = 0; bits < 0x7c00; ++bits)
    ASSERT_EQ(rounded_to(Dtype::kF16, to_float(f16{uint16_t(bits)})),
              to_float(f16{uint16_t(bits)}));
}

}  // namespace
}  // namespace bascule
