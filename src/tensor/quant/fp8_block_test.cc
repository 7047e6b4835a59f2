#include "tensor/quant/fp8_block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace bascule {
namespace {

TEST(Fp8E4m3, ReadsEveryKindOfCode) {
  EXPECT_EQ(fp8_e4m3_value(0x00), 0.0f);
  EXPECT_TRUE(std::signbit(fp8_e4m3_value(0x80)));
  EXPECT_EQ(fp8_e4m3_value(0x01), 0x1p-9f);  // the least subnormal
  EXPECT_EQ(fp8_e4m3_value(0x07), 7 * 0x1p-9f);
  EXPECT_EQ(fp8_e4m3_value(0x08), 0x1p-6f);  // the least normal
  EXPECT_EQ(fp8_e4m3_value(0x38), 1.0f);
  EXPECT_EQ(fp8_e4m3_value(0xbc), -1.5f);
  EXPECT_EQ(fp8_e4m3_value(0x7e), 448.0f);
  EXPECT_TRUE(std::isnan(fp8_e4m3_value(0x7f)));
  EXPECT_TRUE(std::isnan(fp8_e4m3_value(0xff)));
}

TEST(Fp8Block, EdgesTakeTheScaleOfTheirBlock) {
  const int64_t n_rows = 130, n_columns = 257;
  const std::vector<uint8_t> codes(n_rows * n_columns, 0x38);
  const std::vector<float> scales = {1, 2, 3, 4, 5, 6};
  std::vector<float> values(codes.size(), NAN);
  const auto v = View<float, 2>::packed(values.data(), {n_rows, n_columns});
  decode_fp8_blocks(View<const uint8_t, 2>::packed(codes.data(), {n_rows, n_columns}),
                    View<const float, 2>::packed(scales.data(), {2, 3}), v);
  for (int64_t r = 0; r < n_rows; ++r)
    for (int64_t c = 0; c < n_columns; ++c)
      ASSERT_EQ(v(r, c), scales[r / 128 * 3 + c / 128]) << r << ", " << c;
}

}  // namespace
}  // namespace bascule
