#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace bascule {
namespace {

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(to_bf16(1.0f).bits, 0x3f80);
  EXPECT_EQ(to_bf16(1.00390625f).bits, 0x3f80);  // halfway, to the even neighbour below
  EXPECT_EQ(to_bf16(1.01171875f).bits, 0x3f82);  // halfway, to the even neighbour above
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(to_float(to_bf16(std::numeric_limits<float>::infinity())),
            std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(F16, ReadsNormalsSubnormalsAndSpecials) {
  EXPECT_EQ(to_float(f16{0x3c00}), 1.0f);
  EXPECT_EQ(to_float(f16{0xc000}), -2.0f);
  EXPECT_EQ(to_float(f16{0x0001}), 0x1p-24f);
  EXPECT_EQ(to_float(f16{0x7bff}), 65504.0f);
  EXPECT_TRUE(std::isinf(to_float(f16{0x7c00})));
  EXPECT_TRUE(std::isnan(to_float(f16{0x7e00})));
}

TEST(View, SlicesRowsAndColumns) {
  std::vector<int> data(24);
  for (int i = 0; i < 24; ++i) data[i] = i;
  const auto v = View<int, 2>::packed(data.data(), {4, 6});
  EXPECT_EQ(v(2, 3), 15);
  EXPECT_EQ(v.slice(1, 2).columns(4, 2)(1, 1), 17);
  EXPECT_EQ(v.columns(4, 2).size(), 8);
  EXPECT_EQ(v[3](5), 23);
}

TEST(Dtype, NamesRoundTrip) {
  for (const char* n : {"F32", "BF16", "F16", "F8_E4M3", "F8_E5M2", "F8_E8M0", "I64", "I32", "I16",
                        "I8", "U8", "BOOL", "F64", "U64", "U32", "U16"})
    EXPECT_EQ(name(*dtype_from_name(n)), n);
  EXPECT_FALSE(dtype_from_name("F99").has_value());
}

TEST(Tensor, KnowsItsTypeAtRunTime) {
  std::vector<bf16> data{to_bf16(1), to_bf16(2), to_bf16(3), to_bf16(4)};
  const auto t = Tensor<2>::of(View<bf16, 2>::packed(data.data(), {2, 2}));
  EXPECT_EQ(load(t.row(1), t.dtype, 1), 4.0f);
  EXPECT_EQ(to_float(t.as<bf16>()(0, 1)), 2.0f);
}

}  // namespace
}  // namespace bascule
