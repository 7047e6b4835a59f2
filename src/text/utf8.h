// Bytes that arrive in any cuts, to UTF-8 text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bascule {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

bool is_utf8(std::string_view bytes);

// Holds back a character until its last byte is there. What can not become a character is replaced
// by U+FFFD, one for each longest start of a character (Unicode 15, chapter 3, "maximal subparts"):
// the text is the same however the bytes were cut.
class Utf8Stream {
 public:
  void push(std::string_view bytes, std::string& text);  // appends what is certain
  void finish(std::string& text);                        // a started character is replaced

 private:
  void push(uint8_t byte, std::string& text);
  void begin(uint8_t byte, std::string& text);
  void replace(std::string& text);

  std::string started_;    // the bytes of an unfinished character
  int n_missing_ = 0;      // and how many it lacks
  uint8_t lowest_ = 0x80;  // bounds of the next byte
  uint8_t highest_ = 0xBF;
};

}  // namespace bascule
