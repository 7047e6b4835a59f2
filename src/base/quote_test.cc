#include "base/quote.h"

#include <gtest/gtest.h>

namespace bascule {
namespace {

TEST(Quote, LeavesOrdinaryTextAlone) {
  EXPECT_EQ(in_quotes("model.norm.weight"), "\"model.norm.weight\"");
  EXPECT_EQ(in_quotes("größe 重み 🙂"), "\"größe 重み 🙂\"");
}

TEST(Quote, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(in_quotes("a\x1b[2J\n\"b\\"), "\"a\\x1b[2J\\x0a\\\"b\\\\\"");
  EXPECT_EQ(in_quotes("\xc2\x9b"), "\"\\xc2\\x9b\"");  // C1: control sequence introducer
  EXPECT_EQ(in_quotes(std::string_view("\0", 1)), "\"\\x00\"");
}

TEST(Quote, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(in_quotes("\xff\xc3"), "\"\\xff\\xc3\"");
  EXPECT_EQ(in_quotes("\xc0\xaf"), "\"\\xc0\\xaf\"");                    // overlong
  EXPECT_EQ(in_quotes("\xed\xa0\x80"), "\"\\xed\\xa0\\x80\"");           // surrogate
  EXPECT_EQ(in_quotes("\xf4\x90\x80\x80"), "\"\\xf4\\x90\\x80\\x80\"");  // beyond U+10FFFF
}

TEST(Quote, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(in_quotes(std::string(1000, 'x'), 3), "\"xxx\"... (1000 bytes)");
  EXPECT_EQ(in_quotes("öööö", 3), "\"öö\"... (8 bytes)");
}

}  // namespace
}  // namespace bascule
