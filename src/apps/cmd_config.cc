#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/commands.h"

namespace bascule {

Result<int> cmd_config(const CommandLine& line) {
  nlohmann::ordered_json json;
  for (const OptionRow& row : option_rows()) {
    const Options::Value& value = line.options.value(row.name);
    const std::string text = fmt::format("{}", fmt::join(value.texts, ", "));
    if (line.options.flag("json")) {
      nlohmann::ordered_json& entry = json[std::string(row.name)];
      entry["value"] = nullptr;
      if (!value.texts.empty()) entry["value"] = text;
      entry["origin"] = value.origin;
    } else {
      fmt::print("{:<22} {:<16} {}\n", row.name, value.texts.empty() ? "-" : text, value.origin);
    }
  }
  if (line.options.flag("json")) fmt::print("{}\n", json.dump(2));
  return 0;
}

}  // namespace bascule
