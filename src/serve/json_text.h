// JSON written by hand where it is written for every token.
#pragma once

#include <string>
#include <string_view>

namespace bascule {

// Appends `text`, which is UTF-8, as a JSON string with its quotes.
void append_json_string(std::string& out, std::string_view text);

inline std::string json_quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

// Appends a finite number, or null.
void append_json_number(std::string& out, double value);

}  // namespace bascule
