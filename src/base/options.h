// Every option of every command, in one table, and their values. A value comes from the command
// line, else the environment (BASCULE_<OPTION>), else a configuration file (--config, TOML), else
// the model's own defaults, else it is built in; each keeps where it came from. Nothing else in the
// program reads the environment for settings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace bascule {

enum class OptionKind {
  kFlag,     // given or not; "true" and "false" in files and the environment
  kInteger,  // of 64 bits
  kNumber,   // a finite double
  kBytes,    // "4GiB", "500MB", "4096"
  kText,
  kList,  // repeatable; one entry each time it is given
};

struct OptionRow {
  std::string_view name;  // "max-tokens": --max-tokens, BASCULE_MAX_TOKENS, max-tokens = 5
  OptionKind kind;
  std::string_view built_in;    // as text; empty: no value
  std::string_view value_name;  // "N"; in help
  std::string_view commands;    // "run plan"; "*": all
  std::string_view group;       // heading in help
  std::string_view help;
  std::string_view choices;  // "reference fast auto": nothing else is taken
  std::string_view aliases;  // "tensor-parallel-size": other spellings of the flag
  std::optional<double> least, most;
};

std::span<const OptionRow> option_rows();
const OptionRow* find_option(std::string_view name);  // by name or alias; null: none
bool applies(const OptionRow& row, std::string_view command);

// Values by name, with where each came from.
class Options {
 public:
  struct Value {
    std::vector<std::string> texts;  // several only for a kList
    std::string origin;  // "flag", "environment BASCULE_TP", "file x.toml:3", "built-in"
    int rank = 0;        // of the origin: higher wins
  };

  Options();  // everything built in

  // Each refuses what the option's row does not allow; the message says what would do.
  Status set_flag(std::string_view name, std::vector<std::string> texts);
  Status set_environment(const std::map<std::string, std::string>& environment);
  Status set_file(const std::filesystem::path& path);
  Status set_file_text(std::string_view toml, const std::string& path);  // of a file read already
  // From the model's own files; `file` names one: "generation_config.json".
  Status set_model(std::string_view name, std::string text, const std::string& file);

  // Names in the environment (BASCULE_…) that are no option, with the nearest that is.
  const std::vector<std::string>& warnings() const { return warnings_; }

  bool has(std::string_view name) const { return !value(name).texts.empty(); }
  bool flag(std::string_view name) const;
  int64_t integer(std::string_view name) const;  // has() must hold for this and the next two
  double number(std::string_view name) const;
  int64_t bytes(std::string_view name) const;
  std::string text(std::string_view name) const;  // empty without a value
  const std::vector<std::string>& list(std::string_view name) const { return value(name).texts; }
  const Value& value(std::string_view name) const;

 private:
  Status set(const OptionRow& row, std::vector<std::string> texts, std::string origin, int rank);

  std::map<std::string, Value, std::less<>> values_;
  std::vector<std::string> warnings_;
};

// "4GiB", "1.5 GB", "4096": bytes.
Result<int64_t> parse_bytes(std::string_view text);

// "1,2,3" as numbers; the message says which part is none.
Result<std::vector<int32_t>> parse_ids(std::string_view text);

// The entry of `known` that `word` was probably meant to be; empty: none is near.
std::string nearest(std::string_view word, std::span<const std::string> known);

// What a person typed.
struct CommandLine {
  std::string command;                   // "run"
  std::vector<std::string> positionals;  // MODEL and the like, in order
  Options options;
  bool wants_help = false;  // of the command, or of the program where command is empty
  bool wants_version = false;
};

// Parses the arguments after the program's name against `commands`, and layers environment and
// --config under them.
Result<CommandLine> parse_command_line(const std::vector<std::string>& arguments,
                                       const std::map<std::string, std::string>& environment,
                                       std::span<const std::string> commands);

}  // namespace bascule
