#include "apps/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/log.h"
#include "device/machine.h"

namespace bascule {
namespace {

const Command kCommands[] = {
    {"run", "bascule run [MODEL] [PROMPT] [options]", "chat in the terminal, or one prompt",
     "Answers PROMPT, or what stands on standard input, or holds a conversation when that is a\n"
     "terminal. MODEL is a folder in Hugging Face layout, or a Hub id (ORG/NAME) that is in the\n"
     "local Hub cache; without it, the demo model that ships with the program. A first word that\n"
     "is neither a folder nor an ORG/NAME is the prompt.",
     "  bascule run \"Tom has 3 apples and buys 4 more. How many has he?\"\n"
     "  bascule run zai-org/GLM-5.2                      # a conversation\n"
     "  bascule run ./model \"Name three rivers.\" --temperature 0 --max-tokens 60\n"
     "  cat letter.txt | bascule run --no-thinking       # the prompt from a file\n"
     "  bascule run ./model --prompt-ids 5,6,7 --max-tokens 48 --temperature 0 --ignore-eos \\\n"
     "      --kernels reference --activations f32 --dump out.safetensors",
     cmd_run},
    {"plan", "bascule plan [MODEL] [options]", "what would run here, and in how many bytes",
     "Resolves every op of the model in every band of token counts without loading weights, and\n"
     "prints which kernel runs, why, what it must read and compute, and the bytes of every pool.",
     "  bascule plan ./model\n"
     "  bascule plan ./model --explain matmul            # every row and why it was refused\n"
     "  bascule plan ./model --tp 2 --max-model-len 131072 --json",
     cmd_plan},
    {"inspect", "bascule inspect [MODEL] [options]", "every tensor and where it goes",
     "Accounts for every tensor of a checkpoint: loaded, skipped with a reason, missing or "
     "unknown,\n"
     "with totals by part of the model. Fails if the model would not load.",
     "  bascule inspect ./model\n"
     "  bascule inspect ./model --check                  # read every weight, find NaN and "
     "infinity\n"
     "  bascule inspect ./model --json | jq '.tensors[] | select(.fate != \"loaded\")'",
     cmd_inspect},
    {"config", "bascule config [options]", "every option's value and where it came from",
     "Prints what each option is after the command line, the environment (BASCULE_<OPTION>) and\n"
     "--config FILE: flag wins over environment, over file, over the model's own defaults, over\n"
     "what is built in.",
     "  bascule config\n"
     "  BASCULE_TP=2 bascule config --config bascule.toml --json",
     cmd_config},
    {"completion", "bascule completion bash|zsh|fish", "the completion script of a shell",
     "Prints a script that completes commands and options.",
     "  bascule completion bash > /etc/bash_completion.d/bascule\n"
     "  source <(bascule completion zsh)",
     cmd_completion},
};

// "  --max-tokens N   longest answer …", wrapped under itself.
std::string option_help(const OptionRow& row) {
  std::string left =
      fmt::format("  --{}{}{}", row.name, row.value_name.empty() ? "" : " ", row.value_name);
  std::string right(row.help);
  if (!row.choices.empty()) right += fmt::format(" ({})", row.choices);
  if (!row.built_in.empty()) right += fmt::format(" [{}]", row.built_in);
  constexpr size_t kColumn = 28;
  if (left.size() + 2 > kColumn) return fmt::format("{}\n{:{}}{}\n", left, "", kColumn, right);
  return fmt::format("{:<{}}{}\n", left, kColumn, right);
}

int report(const Status& status, const std::string& command) {
  fmt::print(stderr, "bascule{}{}: {}\n", command.empty() ? "" : " ", command, status.message());
  return status.code() == Code::kCancelled ? 130 : 1;
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

std::string help_text(const Command& command) {
  std::string text =
      fmt::format("{}\n\n{}\n\nExamples:\n{}\n", command.usage, command.text, command.examples);
  std::string group;
  for (const OptionRow& row : option_rows()) {
    if (!applies(row, command.name)) continue;
    if (row.group != group) text += fmt::format("\n{}:\n", row.group);
    group = row.group;
    text += option_help(row);
  }
  return text +
         "\nEach option may also stand in the environment (BASCULE_MAX_TOKENS=5) or in a file\n"
         "(--config FILE, with lines such as max-tokens = 5).\n";
}

std::string program_help() {
  std::string text =
      "bascule: runs frontier mixture-of-experts language models, GLM-5.2 first\n\n"
      "bascule COMMAND [options]\n\nCommands:\n";
  for (const Command& command : commands())
    text += fmt::format("  {:<12}{}\n", command.name, command.summary);
  return text +
         "\nFirst steps:\n"
         "  bascule run \"Tom has 3 apples and buys 4 more. How many has he?\"\n"
         "  bascule run --help\n\n"
         "  --version   print the version and stop\n";
}

std::string version_text() {
  std::string isas;
  for (const Isa isa : Machine::detect().isas)
    isas += fmt::format("{}{}", isas.empty() ? "" : ", ", name(isa));
  return fmt::format("bascule {} ({}; this machine: {})\n", BASCULE_VERSION, BASCULE_COMPILER,
                     isas);
}

int run_program(const std::vector<std::string>& arguments,
                const std::map<std::string, std::string>& environment) {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.push_back(command.name);
  if (!arguments.empty() && !arguments[0].starts_with('-') &&
      std::ranges::find(names, arguments[0]) == names.end()) {
    const std::string near = nearest(arguments[0], names);
    fmt::print(stderr, "bascule: there is no command \"{}\"{}; bascule --help lists them\n",
               arguments[0], near.empty() ? "" : fmt::format("; is it \"{}\"?", near));
    return 2;
  }
  const Result<CommandLine> parsed = parse_command_line(arguments, environment, names);
  if (!parsed.ok()) {
    report(parsed.status(), "");
    return 2;
  }
  const CommandLine& line = *parsed;
  if (line.wants_version) {
    fmt::print("{}", version_text());
    return 0;
  }
  if (line.command.empty()) {
    fmt::print(line.wants_help ? stdout : stderr, "{}", program_help());
    return line.wants_help ? 0 : 2;
  }
  set_log_level(log_level_from_name(line.options.text("log-level")).value());
  for (const std::string& warning : line.options.warnings()) log_warning("{}", warning);
  for (const Command& command : commands()) {
    if (command.name != line.command) continue;
    if (line.wants_help) {
      fmt::print("{}", help_text(command));
      return 0;
    }
    const Result<int> result = command.run(line);
    return result.ok() ? *result : report(result.status(), command.name);
  }
  check_failed(__FILE__, __LINE__, "every parsed command is in the list", line.command);
}

}  // namespace bascule
