// Completion scripts, generated from the tables of commands and options.
#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/terminal.h"
#include "base/quote.h"

namespace bascule {
namespace {

constexpr std::string_view kShells = "bash zsh fish";

std::string command_names() {
  std::string names;
  for (const Command& command : commands())
    names += fmt::format("{}{}", names.empty() ? "" : " ", command.name);
  return names;
}

std::string flags_of(const std::string& command) {
  std::string flags;
  for (const OptionRow& row : option_rows())
    if (applies(row, command)) flags += fmt::format("{}--{}", flags.empty() ? "" : " ", row.name);
  return flags;
}

std::string bash_script() {
  std::string cases, choices;
  for (const Command& command : commands())
    cases += fmt::format("    {}) options=\"{}\" ;;\n", command.name, flags_of(command.name));
  for (const OptionRow& row : option_rows())
    if (!row.choices.empty())
      choices += fmt::format("    --{}) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return ;;\n",
                             row.name, row.choices);
  return fmt::format(
      R"(# bash completion of bascule
_bascule() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$word"))
    return
  fi
  case $before in
    completion) COMPREPLY=($(compgen -W "{}" -- "$word")); return ;;
{}  esac
  case ${{COMP_WORDS[1]}} in
{}  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _bascule bascule
)",
      command_names(), kShells, choices, cases);
}

// zsh runs bash's function through its own emulation.
std::string zsh_script() {
  return "#compdef bascule\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script();
}

std::string fish_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

std::string fish_script() {
  std::string script = "# fish completion of bascule\n";
  for (const Command& command : commands()) {
    script += fmt::format("complete -c bascule -f -n __fish_use_subcommand -a {} -d {}\n",
                          command.name, fish_quoted(command.summary));
    for (const OptionRow& row : option_rows()) {
      if (!applies(row, command.name)) continue;
      std::string value = row.kind == OptionKind::kFlag ? "" : " -r";
      if (!row.choices.empty()) value = " -x -a " + fish_quoted(row.choices);
      script +=
          fmt::format("complete -c bascule -n '__fish_seen_subcommand_from {}' -l {}{} -d {}\n",
                      command.name, row.name, value, fish_quoted(row.help));
    }
  }
  return script +
         fmt::format("complete -c bascule -f -n '__fish_seen_subcommand_from completion' -a '{}'\n",
                     kShells);
}

}  // namespace

Result<std::string> completion_script(const std::string& shell) {
  if (shell == "bash") return bash_script();
  if (shell == "zsh") return zsh_script();
  if (shell == "fish") return fish_script();
  return invalid_argument(fmt::format("shell {}: bash, zsh or fish", in_quotes(shell)));
}

Result<int> cmd_completion(const CommandLine& line) {
  if (line.positionals.size() != 1) return invalid_argument("name one shell: bash, zsh or fish");
  BASCULE_TRY_ASSIGN(const std::string script, completion_script(line.positionals[0]));
  write_output(script);
  return 0;
}

}  // namespace bascule
