#include "apps/commands.h"

#include <algorithm>

#include "apps/terminal.h"
#include "apps/version.h"
#include "base/log.h"
#include "base/quote.h"

namespace bascule {
namespace {

const Command kCommands[] = {
    {"run", "bascule run [MODEL] [PROMPT] [options]", "chat in the terminal, or one prompt",
     "Answers PROMPT, or what comes on standard input, or holds a conversation when that is a\n"
     "terminal. MODEL is a folder in Hugging Face layout, or a Hub id (ORG/NAME) that is in the\n"
     "local Hub cache; without it, the demo model that comes with the program.\n"
     "\n"
     "The first word is MODEL if it is a folder, or a path that begins with /, ./ or ../, or has\n"
     "the form ORG/NAME, found or not. Otherwise it is PROMPT.",
     "  bascule run \"Tom has 3 apples and buys 4 more. How many has he?\"\n"
     "  bascule run zai-org/GLM-5.2                      # a conversation\n"
     "  bascule run ./model \"Name three rivers.\" --temperature 0 --max-tokens 60\n"
     "  cat letter.txt | bascule run --no-thinking       # the prompt from a file\n"
     "  bascule run ./model --prompt-ids 5,6,7 --max-tokens 48 --temperature 0 --ignore-eos \\\n"
     "      --kernels reference --activations f32 --dump out.safetensors",
     cmd_run},
    {"serve", "bascule serve [MODEL] [options]", "an HTTP server for OpenAI's clients",
     "Serves MODEL, or the demo model, at http://HOST:PORT until SIGTERM or Ctrl-C. Then it "
     "begins\n"
     "nothing new, lets running answers end for --drain-seconds, and stops; a second signal stops "
     "at\n"
     "once. Endpoints: /v1/chat/completions, /v1/completions, /v1/models, /tokenize, /detokenize,\n"
     "/v1/plan, /metrics, /version;\n"
     "/health answers while the process lives, /ready once the model has answered a token.\n"
     "docs/server-api.md lists every field of every request.\n"
     "\n"
     "Sampling options here are what a request leaves open; each request may say otherwise.",
     "  bascule serve                                    # the demo model, on 127.0.0.1:8000\n"
     "  bascule serve ./model --port 9000 --served-model-name glm\n"
     "  BASCULE_API_KEY=secret bascule serve ./model --host 0.0.0.0\n"
     "  curl http://127.0.0.1:8000/v1/chat/completions -H 'content-type: application/json' \\\n"
     "      -d '{\"messages\": [{\"role\": \"user\", \"content\": \"What is 3 + 4?\"}]}'",
     cmd_serve},
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
     "with totals by part of the model. Ends with 1 if the model would not load.",
     "  bascule inspect ./model\n"
     "  bascule inspect ./model --check                  # read every weight, find NaN and "
     "infinity\n"
     "  bascule inspect ./model --json | jq '.tensors[] | select(.fate != \"loaded\")'",
     cmd_inspect},
    {"config", "bascule config [MODEL] [options]", "every option's value and where it came from",
     "Prints what each option is after the command line, the environment (BASCULE_<OPTION>) and\n"
     "--config FILE: the flag wins over the environment, that over the file, that over the "
     "model's\n"
     "own defaults (generation_config.json, where MODEL is named), that over what is built in.",
     "  bascule config\n"
     "  bascule config ./model --json\n"
     "  BASCULE_TP=2 bascule config --config bascule.toml",
     cmd_config},
    {"completion", "bascule completion bash|zsh|fish", "the completion script of a shell",
     "Prints a script that completes commands, options and their values.",
     "  bascule completion bash > ~/.local/share/bash-completion/completions/bascule\n"
     "  source <(bascule completion zsh)\n"
     "  bascule completion fish > ~/.config/fish/completions/bascule.fish",
     cmd_completion},
};

// `text` in lines of at most `width`, each after the first behind `indent` spaces.
std::string wrapped(const std::string& text, size_t width, size_t indent) {
  std::string result;
  size_t begin = 0;
  while (text.size() - begin > width) {
    size_t end = text.rfind(' ', begin + width);
    if (end == std::string::npos || end <= begin) break;  // a word longer than the line
    result += text.substr(begin, end - begin) + '\n' + std::string(indent, ' ');
    begin = end + 1;
  }
  return result + text.substr(begin);
}

// "  --max-tokens N   longest answer ... [built in]"
std::string option_help(const OptionRow& row) {
  constexpr size_t kColumn = 28, kWidth = 98;
  const std::string left =
      fmt::format("  --{}{}{}", row.name, row.value_name.empty() ? "" : " ", row.value_name);
  std::string right(row.help);
  if (!row.choices.empty()) {
    std::string choices(row.choices);
    std::ranges::replace(choices, ' ', '|');
    right += fmt::format("; {}", choices);
  }
  if (!row.built_in.empty()) right += fmt::format(" [{}]", row.built_in);
  right = wrapped(right, kWidth - kColumn, kColumn);
  if (left.size() + 2 > kColumn) return fmt::format("{}\n{:{}}{}\n", left, "", kColumn, right);
  return fmt::format("{:<{}}{}\n", left, kColumn, right);
}

int report(const Status& status, const std::string& command, int exit_status) {
  print_notice("bascule{}{}: {}\n", command.empty() ? "" : " ", command, status.message());
  return status.code() == Code::kCancelled ? 130 : exit_status;
}

const Command* find_command(const std::string& name) {
  const auto found = std::ranges::find(commands(), name, &Command::name);
  return found == commands().end() ? nullptr : &*found;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.push_back(command.name);
  return names;
}

int unknown_command(const std::string& word) {
  const std::string near = nearest(word, command_names());
  print_notice("bascule: there is no command {}{}; bascule --help lists them\n",
               in_quotes(word, 64), near.empty() ? "" : fmt::format("; is it \"{}\"?", near));
  return 2;
}

// The exit status of a whole command line that was understood.
int run_line(const CommandLine& line) {
  if (line.wants_version) {
    write_output(version_text());
    return 0;
  }
  const Command* command = find_command(line.command);
  if (line.wants_help) {
    write_output(command ? help_text(*command) : program_help());
    return 0;
  }
  if (!command) {
    write_notice(program_help());
    return 2;
  }
  set_log_level(log_level_from_name(line.options.text("log-level")).value());
  for (const std::string& warning : line.options.warnings()) log_warning("{}", warning);
  const Result<int> result = command->run(line);
  return result.ok() ? *result : report(result.status(), command->name, 1);
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

std::string help_text(const Command& command) {
  std::string text =
      fmt::format("{}\n\n{}\n\nExamples:\n{}\n", command.usage, command.text, command.examples);
  std::string_view group;
  for (const OptionRow& row : option_rows()) {
    if (!applies(row, command.name)) continue;
    if (row.group != group) text += fmt::format("\n{}:\n", row.group);
    group = row.group;
    text += option_help(row);
  }
  return text +
         "\nWhat stands in [] is built in. An option may also stand in the environment\n"
         "(BASCULE_MAX_TOKENS=5) or in a file (--config FILE, with lines such as max-tokens = "
         "5).\n";
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
         "  bascule serve                # the same for programs, over HTTP\n"
         "  bascule plan                 # what runs here, and in how many bytes\n"
         "  bascule run --help           # each command has examples\n\n"
         "  --version   print the version and stop\n";
}

int run_program(const std::vector<std::string>& arguments,
                const std::map<std::string, std::string>& environment) {
  const std::vector<std::string> names = command_names();
  if (!arguments.empty() && !arguments[0].starts_with('-') && !find_command(arguments[0]))
    return unknown_command(arguments[0]);
  const Result<CommandLine> line = parse_command_line(arguments, environment, names);
  if (!line.ok()) return report(line.status(), "", 2);
  const int exit_status = run_line(*line);
  const Status written = flush_output();
  return written.ok() ? exit_status : report(written, line->command, 1);
}

}  // namespace bascule
