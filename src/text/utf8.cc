#include "text/utf8.h"

namespace bascule {

bool is_utf8(std::string_view bytes) {
  Utf8Stream stream;
  std::string text;
  text.reserve(bytes.size());
  stream.push(bytes, text);
  stream.finish(text);
  return text == bytes;  // a replacement changes the text: U+FFFD itself is three valid bytes
}

void Utf8Stream::push(std::string_view bytes, std::string& text) {
  for (const char byte : bytes) push(static_cast<uint8_t>(byte), text);
}

void Utf8Stream::push(uint8_t byte, std::string& text) {
  if (n_missing_ == 0) return begin(byte, text);
  if (byte < lowest_ || byte > highest_) {
    replace(text);
    return begin(byte, text);
  }
  started_ += static_cast<char>(byte);
  lowest_ = 0x80;
  highest_ = 0xBF;
  if (--n_missing_ > 0) return;
  text += started_;
  started_.clear();
}

void Utf8Stream::begin(uint8_t byte, std::string& text) {
  if (byte < 0x80) {
    text += static_cast<char>(byte);
    return;
  }
  if (byte < 0xC2 || byte > 0xF4) {
    text += kReplacementCharacter;
    return;
  }
  started_ = static_cast<char>(byte);
  n_missing_ = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
  // No overlong forms, surrogates or code points past U+10FFFF (Unicode 15, table 3-7).
  lowest_ = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
  highest_ = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
}

void Utf8Stream::replace(std::string& text) {
  text += kReplacementCharacter;
  started_.clear();
  n_missing_ = 0;
}

void Utf8Stream::finish(std::string& text) {
  if (n_missing_ > 0) replace(text);
}

}  // namespace bascule
