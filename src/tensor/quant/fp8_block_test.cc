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

TEST(Fp8E4m3, EveryValueHasItsCode) {
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7f) == 0x7f) continue;
    EXPECT_EQ(fp8_e4m3_code(fp8_e4m3_value(uint8_t(code))), code);
  }
}

// The file's format is OCP's e4m3 whatever the GPU calls its own:
// https://github.com/sgl-project/sglang/pull/28455, https://github.com/uccl-project/uccl/pull/804.
TEST(Fp8E4m3, RoundsToNearestWithTiesToEven) {
  for (uint8_t code = 0; code < 0x7e; ++code) {
    const float low = fp8_e4m3_value(code), high = fp8_e4m3_value(uint8_t(code + 1));
    const float tie = (low + high) / 2;  // exact
    EXPECT_EQ(fp8_e4m3_code(tie), code + code % 2) << tie;
    EXPECT_EQ(fp8_e4m3_code(std::nextafter(tie, 0.0f)), code) << tie;
    EXPECT_EQ(fp8_e4m3_code(-std::nextafter(tie, 500.0f)), 0x80 | (code + 1)) << tie;
  }
  EXPECT_EQ(fp8_e4m3_code(240), 0x77);
  EXPECT_EQ(fp8_e4m3_code(1e9f), 0x7e);  // cut, where a plain cast makes NaN
  EXPECT_EQ(fp8_e4m3_code(-1e-9f), 0x80);
  EXPECT_EQ(fp8_e4m3_code(0x1p-149f), 0x00);
}

TEST(Fp8Block, EachBlockHasItsScaleAndZerosHaveOne) {
  const int64_t n_rows = 129, n_columns = 130;
  std::vector<float> values(size_t(n_rows * n_columns), 0);
  values[0] = -448 * 3;
  values[1] = 3;
  values[129] = -0.5f;                          // block (0, 1), which is cut
  const int64_t last = n_rows * n_columns - 1;  // block (1, 1) stays zero
  std::vector<uint8_t> codes(values.size(), 0xff);
  std::vector<float> scales(4, NAN);
  encode_fp8_blocks(View<const float, 2>::packed(values.data(), {n_rows, n_columns}),
                    View<uint8_t, 2>::packed(codes.data(), {n_rows, n_columns}),
                    View<float, 2>::packed(scales.data(), {2, 2}));
  EXPECT_EQ(scales, (std::vector<float>{3, 0.5f / 448, 1, 1}));
  EXPECT_EQ(codes[0], 0xfe);
  EXPECT_EQ(codes[1], 0x38);
  EXPECT_EQ(codes[129], 0xfe);
  EXPECT_EQ(codes[last], 0);
}

}  // namespace
}  // namespace bascule
