// `bascule run`: loads a model, then answers one prompt or holds a conversation.
#include <unistd.h>

#include "apps/commands.h"
#include "apps/interrupt.h"
#include "apps/request_options.h"
#include "apps/session.h"
#include "apps/terminal.h"

namespace bascule {

Result<int> cmd_run(const CommandLine& line) {
  const Interrupt interrupt;
  BASCULE_TRY_ASSIGN(const RunWords words, split_words(line.positionals));
  Input input(STDIN_FILENO, "standard input");
  const bool has_ids = line.options.has("prompt-ids");
  if (has_ids && words.prompt)
    return invalid_argument("a prompt and --prompt-ids were given; one of them is wanted");

  for (const char* option : {"raw", "no-thinking", "system"})
    if (has_ids && line.options.has(option) && line.options.text(option) != "false")
      return invalid_argument(fmt::format("--{} is of text and has no effect on --prompt-ids ({})",
                                          option, line.options.value(option).origin));

  // The prompt first: a bad one should not wait for the weights.
  std::vector<int32_t> ids;
  std::optional<std::string> prompt = words.prompt;
  if (has_ids) {
    BASCULE_TRY_ASSIGN(ids, prompt_ids(line.options.text("prompt-ids")));
  } else if (!prompt && !is_terminal(STDIN_FILENO)) {
    BASCULE_TRY_ASSIGN(prompt, input.all(Tokenizer::kMaxTextBytes));
  }
  if (prompt && prompt->empty())
    return invalid_argument(words.prompt ? "the prompt is empty"
                                         : "the prompt on standard input is empty");

  BASCULE_TRY_ASSIGN(const std::unique_ptr<Session> session,
                     Session::open(words.model, line.options));
  if (has_ids) {
    BASCULE_TRY(session->answer_ids(std::move(ids)));
  } else if (prompt) {
    BASCULE_TRY(session->answer_text(*prompt));
  } else {
    BASCULE_TRY(session->converse(input));
  }
  BASCULE_TRY(session->finish());
  return 0;
}

}  // namespace bascule
