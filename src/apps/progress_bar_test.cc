#include "apps/progress_bar.h"

#include <gtest/gtest.h>

namespace bascule {
namespace {

TEST(ProgressLine, ShowsShareAndSpeed) {
  EXPECT_EQ(progress_line("reading weights", 0, 4'000'000'000, 1),
            "reading weights  [------------------------]    0 %  0.00 GB/s");
  EXPECT_EQ(progress_line("reading weights", 3'000'000'000, 4'000'000'000, 2),
            "reading weights  [##################------]   75 %  1.50 GB/s");
  EXPECT_EQ(progress_line("reading weights", 5, 5, 0.5),
            "reading weights  [########################]  100 %  0.00 GB/s");
}

TEST(ProgressLine, NothingToReadIsDone) {
  EXPECT_EQ(progress_line("x", 0, 0, 0), "x  [########################]  100 %  0.00 GB/s");
}

TEST(ProgressBar, IsSilentWhereThereIsNoTerminal) {
  testing::internal::CaptureStderr();
  {
    ProgressBar bar("x", true);
    bar.show(1, 2);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace bascule
