#include "text/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace bascule {
namespace {

std::string in_one(std::string_view bytes) {
  Utf8Stream stream;
  std::string text;
  stream.push(bytes, text);
  stream.finish(text);
  return text;
}

std::string byte_by_byte(std::string_view bytes) {
  Utf8Stream stream;
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string delta;
    stream.push(bytes.substr(i, 1), delta);
    EXPECT_TRUE(is_utf8(delta));
    text += delta;
  }
  stream.finish(text);
  return text;
}

std::string utf8(uint32_t c) {
  auto tail = [&](int shift) { return static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xC0 | (c >> 6)), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xE0 | (c >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (c >> 18)), tail(12), tail(6), tail(0)};
}

TEST(Utf8, PassesEveryCodePointWhole) {
  std::string all;
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c < 0xD800 || c > 0xDFFF) all += utf8(c);
  }
  EXPECT_EQ(in_one(all), all);
  EXPECT_TRUE(is_utf8(all));
}

TEST(Utf8, RefusesSurrogatesAndWhatLiesBeyondUnicode) {
  for (uint32_t c = 0xD800; c <= 0xDFFF; ++c) EXPECT_FALSE(is_utf8(utf8(c)));
  EXPECT_FALSE(is_utf8(utf8(0x110000)));
}

// Bytes and the number of U+FFFD that the Unicode Standard (15.0, tables 3-8 to 3-11) wants.
TEST(Utf8, ReplacesOncePerStartOfACharacter) {
  const std::string r(kReplacementCharacter);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82"
       "A",
       r + r + r + r + r + r + r + r + "A"},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF"
       "A",
       r + r + r + r + r + r + r + r + "A"},
      {"\xF4\x91\x92\x93\xFF"
       "A\x80\xBF"
       "B",
       r + r + r + r + r + "A" + r + r + "B"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
       "A",
       r + r + r + r + "A"},
      {"a\xF0\x9F\x99", "a" + r},
      {"\xE2\x82"
       "\xE2\x82\xAC",
       r + "\xE2\x82\xAC"},
  };
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(in_one(bytes), text);
    EXPECT_EQ(byte_by_byte(bytes), text);
  }
}

TEST(Utf8, HoldsBackACharacterUntilItsLastByte) {
  Utf8Stream stream;
  std::string text;
  stream.push("a\xF0\x9F", text);
  EXPECT_EQ(text, "a");
  stream.push("\x99", text);
  EXPECT_EQ(text, "a");
  stream.push(
      "\x82"
      "b",
      text);
  EXPECT_EQ(text,
            "a\xF0\x9F\x99\x82"
            "b");
}

TEST(Utf8, AReplacementCharacterIsTextToo) {
  EXPECT_TRUE(is_utf8(kReplacementCharacter));
  EXPECT_EQ(byte_by_byte("x\xEF\xBF\xBDy"), "x\xEF\xBF\xBDy");
}

}  // namespace
}  // namespace bascule
