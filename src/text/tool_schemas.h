// The tools that a request declares: their names, and what type each argument may have. GLM writes
// the string 5 and the number 5 alike, so only the schema tells them apart.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace bascule {

// Immutable; any thread.
class ToolSchemas {
 public:
  ToolSchemas() = default;  // no tools
  // A list of tools in any of the APIs' shapes: {"type": "function", "function": {name,
  // parameters}}, {name, parameters} or {name, input_schema}. kInvalidArgument names the place.
  static Result<ToolSchemas> from_json(std::string_view tools);

  bool empty() const { return tools_.empty(); }
  bool has(std::string_view tool) const { return tools_.find(tool) != tools_.end(); }
  // Whether some tool's name begins so.
  bool has_prefix(std::string_view start) const;
  size_t longest_name() const { return longest_name_; }

  // An argument as JSON, from the text that the model wrote for it. A string stays as it is
  // written, quotes included. Anything else must be one strict JSON value of a type that the schema
  // allows; its text is kept, so no number passes through a float. What is neither becomes a
  // string.
  std::string argument_json(std::string_view tool, std::string_view key,
                            std::string_view text) const;

 private:
  using TypeSet = uint8_t;  // bits of JSON types
  using Arguments = std::map<std::string, TypeSet, std::less<>>;

  std::map<std::string, Arguments, std::less<>> tools_;
  size_t longest_name_ = 0;
};

// A text as a JSON string; bytes that are no UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

}  // namespace bascule
