// `bascule run`: loads a model, then answers one prompt or holds a conversation.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include "apps/answer.h"
#include "apps/commands.h"
#include "apps/dump.h"
#include "apps/interrupt.h"
#include "apps/model_arguments.h"
#include "apps/progress_bar.h"
#include "base/log.h"
#include "text/glm_prompt.h"

namespace bascule {
namespace {

// The words after `run`: MODEL and PROMPT, either of which may be absent.
struct Words {
  std::string model;
  std::optional<std::string> prompt;
};

Result<Words> split_words(const std::vector<std::string>& words) {
  Words result;
  size_t next = 0;
  if (next < words.size() && looks_like_model(words[next])) result.model = words[next++];
  if (next < words.size()) result.prompt = words[next++];
  if (next < words.size())
    return invalid_argument(fmt::format(
        "\"{}\" comes after the prompt \"{}\"; put quotes around a prompt of several words",
        words[next], *result.prompt));
  return result;
}

Result<std::string> read_all(std::istream& in, const std::string& where) {
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) return internal(fmt::format("{}: cannot be read", where));
  return text;
}

// --prompt-ids: a list, or @FILE that holds one.
Result<std::vector<int32_t>> prompt_ids(const std::string& text) {
  std::string list = text;
  if (text.starts_with('@')) {
    std::ifstream file(text.substr(1));
    if (!file) return not_found(fmt::format("--prompt-ids: {} cannot be opened", text.substr(1)));
    BASCULE_TRY_ASSIGN(list, read_all(file, text.substr(1)));
  }
  BASCULE_TRY_ASSIGN(std::vector<int32_t> ids, parse_ids(list).with_context("--prompt-ids"));
  if (ids.empty()) return invalid_argument("--prompt-ids: no token id in it");
  return ids;
}

Result<std::vector<std::pair<int32_t, float>>> logit_bias(const std::string& text) {
  std::vector<std::pair<int32_t, float>> result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    int32_t id = 0;
    float bias = 0;
    int n_read = 0;
    if (std::sscanf(part.c_str(), "%d:%f%n", &id, &bias, &n_read) != 2 ||
        size_t(n_read) != part.size())
      return invalid_argument(
          fmt::format("--logit-bias: \"{}\" is not ID:X, such as 42:-1.5", part));
    result.emplace_back(id, bias);
    at = end + 1;
  }
  return result;
}

Result<RequestSpec> request_spec(const Options& o) {
  RequestSpec spec;
  if (o.has("max-tokens")) spec.max_tokens = o.integer("max-tokens");
  spec.min_tokens = o.integer("min-tokens");
  spec.ignore_eos = o.flag("ignore-eos");
  BASCULE_TRY_ASSIGN(spec.stop_tokens,
                     parse_ids(o.text("stop-token-ids")).with_context("--stop-token-ids"));
  SamplingParams& s = spec.sampling;
  s.temperature = float(o.number("temperature"));
  s.top_k = int32_t(o.integer("top-k"));
  s.top_p = float(o.number("top-p"));
  s.min_p = float(o.number("min-p"));
  s.presence_penalty = float(o.number("presence-penalty"));
  s.frequency_penalty = float(o.number("frequency-penalty"));
  s.repetition_penalty = float(o.number("repetition-penalty"));
  BASCULE_TRY_ASSIGN(s.logit_bias, logit_bias(o.text("logit-bias")));
  if (o.has("seed")) s.seed = uint64_t(o.integer("seed"));
  s.logprobs = o.has("logprobs");
  if (s.logprobs) s.top_logprobs = int32_t(o.integer("logprobs"));
  return spec;
}

// Everything that answers: made once, used for each prompt.
class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const std::string& model, Options options);

  // What --prompt-ids asks for.
  Status answer_ids(std::vector<int32_t> ids);
  // One prompt of text.
  Status answer_text(const std::string& prompt);
  // Prompts from a terminal until it ends.
  Status converse();

 private:
  Result<std::vector<int32_t>> encode(std::span<const Message> conversation) const;
  // Prints the answers to `prompt`; returns the text of the first, without its thinking.
  Result<std::string> answer(std::vector<int32_t> prompt, AnswerStyle style);

  Options options_;
  RequestSpec spec_;
  std::unique_ptr<LoadedModel> model_;
  std::unique_ptr<Tokenizer> tokenizer_;  // null: the folder has none
  std::optional<GlmPrompt> glm_;
  StopStrings stops_;
  EngineSetup setup_;
  std::unique_ptr<Engine> engine_;
};

Result<std::unique_ptr<Session>> Session::open(const std::string& model, Options options) {
  auto session = std::make_unique<Session>();
  BASCULE_TRY_ASSIGN(const std::filesystem::path folder, resolve_model(model));
  BASCULE_TRY_ASSIGN(session->model_, load_model(folder, config_overrides(options)));
  for (const std::string& notice : session->model_->notices) log_info("{}", notice);
  BASCULE_TRY(apply_model_defaults(*session->model_, options));
  BASCULE_TRY_ASSIGN(session->spec_, request_spec(options));

  Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::from_folder(folder);
  if (tokenizer.ok()) {
    session->tokenizer_ = std::move(tokenizer).value();
    session->glm_ = GlmPrompt::of(*session->tokenizer_);
  } else if (tokenizer.status().code() != Code::kNotFound) {
    return tokenizer.status();
  } else if (!options.has("prompt-ids")) {
    return tokenizer.status().with_context("text needs a tokenizer; --prompt-ids needs none");
  }
  BASCULE_TRY_ASSIGN(session->stops_, StopStrings::compile(options.list("stop")));

  EngineOptions engine = engine_options(options);
  if (session->tokenizer_) engine.n_valid_tokens = session->tokenizer_->vocab_size();
  BASCULE_TRY_ASSIGN(session->setup_, plan_engine(*session->model_, engine));
  for (const std::string& notice : session->setup_.memory.notices) log_info("{}", notice);
  {
    ProgressBar bar("reading weights", !options.flag("quiet"));
    BASCULE_TRY(session->model_->read_ahead([&](int64_t done, int64_t all) {
      bar.show(done, all);
      return !Interrupt::requested();
    }));
  }
  BASCULE_TRY_ASSIGN(session->engine_, make_engine(*session->model_, session->setup_));
  session->options_ = std::move(options);
  return session;
}

Result<std::vector<int32_t>> Session::encode(std::span<const Message> conversation) const {
  if (options_.flag("raw") || !glm_) return tokenizer_->encode(conversation.back().text);
  return glm_->encode(conversation, !options_.flag("no-thinking"));
}

Status Session::answer_ids(std::vector<int32_t> ids) {
  return status_of(answer(std::move(ids), {.as_ids = true}));
}

Status Session::answer_text(const std::string& prompt) {
  std::vector<Message> conversation;
  if (options_.has("system")) conversation.push_back({Role::kSystem, options_.text("system")});
  conversation.push_back({Role::kUser, prompt});
  BASCULE_TRY_ASSIGN(std::vector<int32_t> ids, encode(conversation));
  const bool is_chat = glm_ && !options_.flag("raw");
  return status_of(
      answer(std::move(ids), {.in_thinking = is_chat && !options_.flag("no-thinking")}));
}

Status Session::converse() {
  if (!glm_)
    return unsupported(
        "this model's vocabulary has no GLM chat tokens, so there is no conversation; give one "
        "prompt, which runs as it is");
  fmt::print(stderr, "A conversation. An empty line or Ctrl-D ends it, Ctrl-C stops an answer.\n");
  std::vector<Message> conversation;
  if (options_.has("system")) conversation.push_back({Role::kSystem, options_.text("system")});
  while (true) {
    fmt::print(stderr, "> ");
    std::string line;
    if (!std::getline(std::cin, line) || line.empty()) return {};
    conversation.push_back({Role::kUser, line});
    BASCULE_TRY_ASSIGN(std::vector<int32_t> ids, encode(conversation));
    Result<std::string> said =
        answer(std::move(ids), {.in_thinking = !options_.flag("no-thinking")});
    if (said.ok()) {
      conversation.push_back({Role::kAssistant, *said});
    } else {  // the question is taken back, and the conversation goes on
      fmt::print(stderr, "{}\n", said.status().message());
      conversation.pop_back();
    }
    Interrupt::forget();
    std::cin.clear();
  }
}

Result<std::string> Session::answer(std::vector<int32_t> prompt, AnswerStyle style) {
  const int64_t n_answers = options_.integer("n");
  style.colour = wants_colour(STDOUT_FILENO);
  style.quiet = options_.flag("quiet");
  style.think_end = glm_ ? glm_->think_end() : -1;
  style.streams = n_answers == 1;

  std::optional<DumpRecorder> dump;
  if (options_.has("dump")) {
    dump.emplace(model_->config);
  }
  std::vector<std::shared_ptr<Answer>> answers;
  std::vector<RequestId> ids;
  for (int64_t i = 0; i < n_answers; ++i) {
    RequestSpec spec = spec_;
    spec.prompt = prompt;
    spec.sampling.choice = int32_t(i);
    spec.recorder = dump ? &*dump : nullptr;
    answers.push_back(std::make_shared<Answer>(style, tokenizer_.get(), stops_));
    Result<RequestId> id = engine_->submit(std::move(spec), answers.back()->listener());
    if (!id.ok()) {
      for (const RequestId earlier : ids) engine_->cancel(earlier);
      engine_->run_until_idle();
      return id.status();
    }
    ids.push_back(*id);
  }
  for (bool cancelled = false; engine_->step();) {
    if (cancelled || !Interrupt::requested()) continue;
    cancelled = true;
    for (const RequestId id : ids) engine_->cancel(id);
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!style.streams)
      fmt::print("{}--- answer {} ---\n{}\n", i ? "\n" : "", i + 1, answers[i]->printed());
    if (!style.quiet) fmt::print(stderr, "{}\n", answers[i]->summary());
  }
  for (const auto& a : answers) {
    if (a->end().reason == EndReason::kCancelled) return cancelled("stopped by Ctrl-C");
    if (a->end().reason == EndReason::kFailed) return internal(a->end().message);
  }
  if (dump) BASCULE_TRY(dump->write(options_.text("dump"), prompt, answers[0]->tokens()));
  return answers[0]->text();
}

// Before anything long runs: whether --dump could be written.
Status check_dump(const Options& options) {
  if (!options.has("dump")) return {};
  if (options.integer("n") > 1)
    return invalid_argument("--dump records one answer; leave --n at 1");
  const auto folder = std::filesystem::absolute(options.text("dump")).parent_path();
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    return not_found(
        fmt::format("--dump {}: there is no folder {}", options.text("dump"), folder.string()));
  return {};
}

}  // namespace

Result<int> cmd_run(const CommandLine& line) {
  const Interrupt interrupt;
  BASCULE_TRY_ASSIGN(const Words words, split_words(line.positionals));
  const bool has_ids = line.options.has("prompt-ids");
  BASCULE_TRY(check_dump(line.options));
  if (has_ids && words.prompt)
    return invalid_argument("a prompt and --prompt-ids were given; one of them is wanted");
  std::vector<int32_t> ids;
  if (has_ids) {
    BASCULE_TRY_ASSIGN(ids, prompt_ids(line.options.text("prompt-ids")));
  }

  BASCULE_TRY_ASSIGN(const std::unique_ptr<Session> session,
                     Session::open(words.model, line.options));
  if (has_ids) {
    BASCULE_TRY(session->answer_ids(std::move(ids)));
  } else if (words.prompt) {
    BASCULE_TRY(session->answer_text(*words.prompt));
  } else if (is_terminal(STDIN_FILENO)) {
    BASCULE_TRY(session->converse());
  } else {
    BASCULE_TRY_ASSIGN(const std::string prompt, read_all(std::cin, "standard input"));
    if (prompt.empty()) return invalid_argument("the prompt on standard input is empty");
    BASCULE_TRY(session->answer_text(prompt));
  }
  return 0;
}

}  // namespace bascule
