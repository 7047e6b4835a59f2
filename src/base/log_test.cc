#include "base/log.h"

#include <gtest/gtest.h>

#include <functional>

namespace bascule {
namespace {

std::string logged(LogLevel level, const std::function<void()>& write) {
  set_log_level(level);
  testing::internal::CaptureStderr();
  write();
  std::string text = testing::internal::GetCapturedStderr();
  set_log_level(LogLevel::kWarning);
  return text;
}

TEST(Log, WritesOneLineAnEventToStandardError) {
  const std::string text = logged(LogLevel::kInfo, [] { log_info("{} pages of {}", 3, 5); });
  EXPECT_TRUE(text.ends_with(" info 3 pages of 5\n")) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);  // no colour where there is no terminal
  EXPECT_EQ(text.find('\n'), text.size() - 1);
}

TEST(Log, BelowTheLevelNothingIsWritten) {
  EXPECT_EQ(logged(LogLevel::kWarning, [] { log_info("x"), log_debug("x"); }), "");
  EXPECT_NE(logged(LogLevel::kWarning, [] { log_warning("x"); }), "");
  EXPECT_EQ(logged(LogLevel::kOff, [] { log_error("x"); }), "");
}

TEST(Log, LevelsHaveNames) {
  for (const LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError, LogLevel::kOff})
    EXPECT_EQ(*log_level_from_name(name(level)), level);
  EXPECT_EQ(log_level_from_name("loud").status().message(),
            "log level \"loud\": debug, info, warning, error or off");
}

TEST(Log, FirstTimeIsTrueOnceForEachKey) {
  EXPECT_TRUE(first_time("a"));
  EXPECT_FALSE(first_time("a"));
  EXPECT_TRUE(first_time("b"));
}

}  // namespace
}  // namespace bascule
