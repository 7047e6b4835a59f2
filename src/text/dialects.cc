#include "text/dialects.h"

#include <algorithm>

namespace bascule {
namespace {

constexpr std::string_view kGlmTypes[] = {"glm4_moe", "glm4_moe_lite", "glm_moe_dsa"};

constexpr Dialect kDialects[] = {
    {.name = "glm",
     .model_types = kGlmTypes,
     .think_begin = "<think>",
     .think_end = "</think>",
     .call_begin = "<tool_call>",
     .call_end = "</tool_call>",
     .key_begin = "<arg_key>",
     .key_end = "</arg_key>",
     .value_begin = "<arg_value>",
     .value_end = "</arg_value>"},
};

}  // namespace

const Dialect* find_dialect(std::string_view model_type) {
  for (const Dialect& dialect : kDialects) {
    if (std::ranges::find(dialect.model_types, model_type) != dialect.model_types.end()) {
      return &dialect;
    }
  }
  return nullptr;
}

bool opens_thinking(const Dialect& dialect, std::string_view prompt) {
  const size_t last = prompt.find_last_not_of(" \t\r\n");
  return last != prompt.npos && prompt.substr(0, last + 1).ends_with(dialect.think_begin);
}

}  // namespace bascule
