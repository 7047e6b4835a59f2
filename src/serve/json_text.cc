#include "serve/json_text.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace bascule {
namespace {

bool needs_escape(unsigned char c) { return c < 0x20 || c == '"' || c == '\\'; }

void append_escaped(std::string& out, unsigned char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!needs_escape(static_cast<unsigned char>(text[i]))) continue;
    out.append(text, begin, i - begin);
    append_escaped(out, static_cast<unsigned char>(text[i]));
    begin = i + 1;
  }
  out.append(text, begin);
  out += '"';
}

void append_json_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const size_t begin = out.size();
  fmt::format_to(std::back_inserter(out), "{}", float(value));
  // "-0" and "3" are numbers to JSON, and integers to some of its readers.
  if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";
}

}  // namespace bascule
