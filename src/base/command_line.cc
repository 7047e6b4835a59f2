// argv by CLI11, against the table. CLI11 ranks files above the environment, so it sees only argv;
// the layers are Options'.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>

#include "base/options.h"
#include "base/quote.h"

namespace bascule {
namespace {

// A command's options as CLI11 fills them.
struct Filled {
  std::map<std::string, std::vector<std::string>, std::less<>> texts;  // where values are taken
  std::map<std::string, bool, std::less<>> flags;
  // One more than any command takes. Each on its own: CLI11 splits "[a, b]" for a list of them.
  std::array<std::string, 4> positionals;
};

std::string positional_name(size_t i) { return fmt::format("word{}", i + 1); }

std::string flag_names(const OptionRow& row) {
  std::string names = fmt::format("--{}", row.name);
  std::istringstream aliases{std::string(row.aliases)};
  for (std::string alias; aliases >> alias;) names += ",--" + alias;
  return names;
}

void declare(CLI::App& app, std::string_view command, Filled& filled) {
  app.set_help_flag();  // ours is in the table
  for (const OptionRow& row : option_rows()) {
    if (!applies(row, command)) continue;
    const std::string name(row.name);
    if (row.kind == OptionKind::kFlag) {
      app.add_flag(flag_names(row), filled.flags[name]);
    } else {
      auto* option = app.add_option(flag_names(row), filled.texts[name]);
      option->expected(1)->allow_extra_args(false);
      option->multi_option_policy(row.kind == OptionKind::kList ? CLI::MultiOptionPolicy::TakeAll
                                                                : CLI::MultiOptionPolicy::TakeLast);
    }
  }
  for (size_t i = 0; i < filled.positionals.size() && !command.empty(); ++i)
    app.add_option(positional_name(i), filled.positionals[i]);
}

Status take(const CLI::App& app, std::string_view command, const Filled& filled,
            CommandLine& result) {
  for (size_t i = 0; i < filled.positionals.size() && !command.empty(); ++i)
    if (app.count(positional_name(i)) > 0) result.positionals.push_back(filled.positionals[i]);
  for (const OptionRow& row : option_rows()) {
    if (!applies(row, command) || app.count(fmt::format("--{}", row.name)) == 0) continue;
    if (row.name == "help") {
      result.wants_help = true;
    } else if (row.kind == OptionKind::kFlag) {
      BASCULE_TRY(result.options.set_flag(row.name, {"true"}));
    } else {
      BASCULE_TRY(result.options.set_flag(row.name, filled.texts.find(row.name)->second));
    }
  }
  return {};
}

// CLI11 would take the word after "--stop=" as its value.
Status refuse_empty_values(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1)
      return invalid_argument(fmt::format("{0} lacks a value; an empty one is written {1} \"\"",
                                          in_quotes(argument, 64),
                                          argument.substr(0, argument.size() - 1)));
  }
  return {};
}

// CLI11's words for what is wrong with argv, with the nearest option where one is unknown.
Status explain(const CLI::ParseError& error, const std::vector<std::string>& arguments) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    std::vector<std::string> known;
    for (const OptionRow& row : option_rows()) known.push_back(fmt::format("--{}", row.name));
    for (const std::string& argument : arguments) {
      const std::string name = argument.substr(0, argument.find('='));
      const bool is_known = find_option(name.substr(std::min<size_t>(2, name.size()))) != nullptr;
      if (!name.starts_with("--") || is_known) continue;
      const std::string near = nearest(name, known);
      return invalid_argument(fmt::format("there is no option {}{}", name,
                                          near.empty() ? "" : fmt::format("; is it {}?", near)));
    }
  }
  return invalid_argument(error.what());
}

}  // namespace

Result<CommandLine> parse_command_line(const std::vector<std::string>& arguments,
                                       const std::map<std::string, std::string>& environment,
                                       std::span<const std::string> commands) {
  CommandLine result;
  BASCULE_TRY(result.options.set_environment(environment));
  BASCULE_TRY(refuse_empty_values(arguments));

  CLI::App app("bascule");
  Filled general;
  declare(app, "", general);
  app.add_flag("--version", result.wants_version);
  std::map<std::string, Filled> filled;
  for (const std::string& command : commands)
    declare(*app.add_subcommand(command), command, filled[command]);
  app.require_subcommand(0, 1);
  app.fallthrough(false);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return explain(error, arguments);
  }

  BASCULE_TRY(take(app, "", general, result));
  for (const CLI::App* used : app.get_subcommands()) {
    result.command = used->get_name();
    BASCULE_TRY(take(*used, result.command, filled[result.command], result));
  }
  if (result.options.has("config"))
    BASCULE_TRY(result.options.set_file(result.options.text("config")));
  return result;
}

}  // namespace bascule
