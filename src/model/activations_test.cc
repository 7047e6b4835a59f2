#include "model/activations.h"

#include <gtest/gtest.h>

namespace bascule {
namespace {

TEST(ActivationScheme, RoundsByTheWeightsFormat) {
  using S = ActivationScheme;
  using F = WeightFormat;
  using R = Rounding;
  EXPECT_EQ(rounding_of(S::kPlain, F::kMxfp4), R::kNone);
  EXPECT_EQ(rounding_of(S::kInt8, F::kMxfp4), R::kInt8);
  EXPECT_EQ(rounding_of(S::kInt8, F::kFp8Blocks), R::kNone);
  EXPECT_EQ(rounding_of(S::kInt8All, F::kBf16), R::kInt8);
  EXPECT_EQ(rounding_of(S::kFp8, F::kBf16), R::kNone);
  EXPECT_EQ(rounding_of(S::kFp8, F::kMxfp4), R::kFp8Groups);
  EXPECT_EQ(rounding_of(S::kFp8, F::kFp8Rows), R::kFp8Token);
  EXPECT_EQ(rounding_of(S::kDeclared, F::kFp8Blocks), R::kFp8Groups);
  EXPECT_EQ(rounding_of(S::kDeclared, F::kMxfp4), R::kMxfp4);
  EXPECT_EQ(rounding_of(S::kDeclared, F::kBf16), R::kNone);
}

}  // namespace
}  // namespace bascule
