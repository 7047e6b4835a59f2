#include "tensor/quant/fp8_row.h"

#include <gtest/gtest.h>

#include <cmath>

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

}  // namespace
}  // namespace bascule
