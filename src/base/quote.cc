#include "base/quote.h"

#include <fmt/format.h>

#include <cstdint>

namespace bascule {
namespace {

// Bytes of the well-formed UTF-8 sequence that `text` begins with; 0 where there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xed && byte(1) > 0x9f;
  const bool beyond = lead == 0xf4 && byte(1) > 0x8f;
  return overlong || surrogate || beyond ? 0 : length;
}

bool is_control(std::string_view c) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(c[i]); };
  return (c.size() == 1 && (byte(0) < 0x20 || byte(0) == 0x7f)) ||
         (c.size() == 2 && byte(0) == 0xc2 && byte(1) < 0xa0);  // C1
}

}  // namespace

std::string in_quotes(std::string_view text, size_t max_bytes) {
  std::string out = "\"";
  size_t i = 0;
  while (i < text.size() && i < max_bytes) {
    const size_t length = utf8_length(text.substr(i));
    const std::string_view c = text.substr(i, length == 0 ? 1 : length);
    if (c == "\"" || c == "\\") {
      out += '\\';
      out += c;
    } else if (length == 0 || is_control(c)) {
      for (const char b : c) out += fmt::format("\\x{:02x}", static_cast<uint8_t>(b));
    } else {
      out += c;
    }
    i += c.size();
  }
  out += '"';
  if (i < text.size()) out += fmt::format("... ({} bytes)", text.size());
  return out;
}

}  // namespace bascule
