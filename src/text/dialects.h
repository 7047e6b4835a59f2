// How each model family marks thinking and tool calls in what it writes. A new family is a row of
// the table in dialects.cc.
#pragma once

#include <span>
#include <string_view>

namespace bascule {

// A call is call_begin NAME (key_begin KEY key_end value_begin VALUE value_end)* call_end, with any
// white space between its parts. All tags of a dialect begin with the same character, and no name
// or key holds it.
struct Dialect {
  std::string_view name;
  std::span<const std::string_view> model_types;  // of config.json
  std::string_view think_begin, think_end;
  std::string_view call_begin, call_end;
  std::string_view key_begin, key_end;
  std::string_view value_begin, value_end;
};

// Null where no row names the family: its output is content from end to end.
const Dialect* find_dialect(std::string_view model_type);

// Whether a prompt leaves the model inside its thinking: it ends with think_begin, white space
// aside.
bool opens_thinking(const Dialect& dialect, std::string_view prompt);

}  // namespace bascule
