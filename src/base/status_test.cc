#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace bascule {
namespace {

Result<int> halve(int n) {
  if (n % 2 != 0) return invalid_argument("odd");
  return n / 2;
}

Result<int> quarter(int n) {
  BASCULE_TRY_ASSIGN(const int half, halve(n).with_context("first half"));
  BASCULE_TRY_ASSIGN(const int result, halve(half).with_context("second half"));
  return result;
}

Status check(int n) {
  BASCULE_TRY(quarter(n));
  return {};
}

TEST(Status, CarriesCodeAndContextUp) {
  EXPECT_EQ(*quarter(12), 3);
  const Result<int> failed = quarter(6);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(failed.status().message(), "second half: odd");
  EXPECT_TRUE(check(4).ok());
  EXPECT_EQ(check(3).message(), "first half: odd");
}

TEST(Status, ResultMovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> r = std::make_unique<int>(7);
  const std::unique_ptr<int> owned = std::move(r).value();
  EXPECT_EQ(*owned, 7);
}

TEST(CheckDeathTest, PrintsConditionAndValues) {
  EXPECT_DEATH(BASCULE_CHECK_EQ(2 + 2, 5), "2 \\+ 2 == 5: 4 against 5");
}

}  // namespace
}  // namespace bascule
