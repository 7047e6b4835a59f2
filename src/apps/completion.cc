// Completion scripts, generated from the tables of commands and options.
#include <fmt/format.h>

#include <sstream>

#include "apps/commands.h"

namespace bascule {
namespace {

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
      command_names(), choices, cases);
}

// zsh runs bash's function through its own emulation.
std::string zsh_script() {
  return "#compdef bascule\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script();
}

std::string fish_script() {
  std::string script = "# fish completion of bascule\ncomplete -c bascule -f\n";
  for (const Command& command : commands()) {
    script += fmt::format("complete -c bascule -n __fish_use_subcommand -a {} -d '{}'\n",
                          command.name, command.summary);
    for (const OptionRow& row : option_rows()) {
      if (!applies(row, command.name)) continue;
      std::string help;
      for (const char c : row.help) help += c == '\'' ? std::string("\\'") : std::string(1, c);
      script +=
          fmt::format("complete -c bascule -n '__fish_seen_subcommand_from {}' -l {}{}{} -d '{}'\n",
                      command.name, row.name, row.kind == OptionKind::kFlag ? "" : " -r",
                      row.choices.empty() ? "" : fmt::format(" -a '{}'", row.choices), help);
    }
  }
  return script;
}

}  // namespace

Result<std::string> completion_script(const std::string& shell) {
  if (shell == "bash") return bash_script();
  if (shell == "zsh") return zsh_script();
  if (shell == "fish") return fish_script();
  return invalid_argument(fmt::format("shell \"{}\": bash, zsh or fish", shell));
}

Result<int> cmd_completion(const CommandLine& line) {
  if (line.positionals.size() != 1) return invalid_argument("name one shell: bash, zsh or fish");
  BASCULE_TRY_ASSIGN(const std::string script, completion_script(line.positionals[0]));
  fmt::print("{}", script);
  return 0;
}

}  // namespace bascule
