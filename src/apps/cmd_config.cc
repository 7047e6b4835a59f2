// `bascule config`: what each option is, and why.
#include "apps/commands.h"
#include "apps/model_arguments.h"
#include "apps/terminal.h"
#include "base/json.h"

namespace bascule {
namespace {

std::string config_text(const Options& options) {
  std::string text = fmt::format("{:<22} {:<20} {}\n", "option", "value", "from");
  for (const OptionRow& row : option_rows()) {
    const Options::Value& value = options.value(row.name);
    text += fmt::format("{:<22} {:<20} {}\n", row.name,
                        value.texts.empty() ? "-" : fmt::format("{}", fmt::join(value.texts, ", ")),
                        value.origin);
  }
  return text;
}

std::string config_json(const Options& options) {
  Json json = Json::object();
  for (const OptionRow& row : option_rows()) {
    const Options::Value& value = options.value(row.name);
    Json& entry = json[std::string(row.name)];
    entry["value"] = nullptr;
    if (row.kind == OptionKind::kList) {
      entry["value"] = value.texts;
    } else if (!value.texts.empty()) {
      entry["value"] = value.texts[0];
    }
    entry["origin"] = value.origin;
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<int> cmd_config(const CommandLine& line) {
  Options options = line.options;
  if (!line.positionals.empty()) {
    BASCULE_TRY_ASSIGN(const std::filesystem::path folder, only_model(line));
    BASCULE_TRY_ASSIGN(const std::unique_ptr<LoadedModel> model,
                       load_model(folder, {}, WeightUse::kShapes));
    BASCULE_TRY(apply_model_defaults(model->defaults, options));
  }
  write_output(options.flag("json") ? config_json(options) : config_text(options));
  return 0;
}

}  // namespace bascule
