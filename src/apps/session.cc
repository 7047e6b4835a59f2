#include "apps/session.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "apps/interrupt.h"
#include "apps/model_arguments.h"
#include "apps/progress_bar.h"
#include "apps/request_options.h"
#include "base/atomic_file.h"
#include "base/log.h"
#include "base/trace.h"
#include "device/host_memory.h"

namespace bascule {

Result<std::unique_ptr<Session>> Session::open(const std::string& model, Options options) {
  if (options.has("dump") && options.integer("n") > 1)
    return invalid_argument("--dump records one answer; leave --n at 1");
  // Made and removed: a file that cannot be written is better known now than after the answer.
  for (const char* file : {"dump", "trace"})
    if (options.has(file))
      BASCULE_TRY(AtomicFile::create(options.text(file)).with_context(fmt::format("--{}", file)));
  if (options.has("trace")) trace::start();
  std::unique_ptr<Session> session(new Session(std::move(options)));
  BASCULE_TRY(session->load(model));
  return session;
}

Status Session::load(const std::string& model) {
  const auto started = std::chrono::steady_clock::now();
  BASCULE_TRY_ASSIGN(const std::filesystem::path folder, resolve_model(model));
  {
    const TraceZone zone(zones::kLoad);
    BASCULE_TRY_ASSIGN(model_, load_model(folder, config_overrides(options_)));
  }
  log_info("opened {}: {} bytes of weights", folder.string(), model_->weight_bytes);
  tell(model_->notices);
  BASCULE_TRY(apply_model_defaults(model_->defaults, options_));
  BASCULE_TRY_ASSIGN(spec_, request_spec(options_));
  BASCULE_TRY(load_tokenizer());
  BASCULE_TRY_ASSIGN(stops_, StopStrings::compile(options_.list("stop")));

  BASCULE_TRY_ASSIGN(EngineOptions engine, engine_options(options_, model_->config));
  if (!options_.has("max-num-seqs"))
    engine.max_requests = std::min(options_.integer("n"), engine.max_batch_tokens);
  engine.n_valid_tokens = n_valid_tokens();
  BASCULE_TRY(pack_weights(engine));
  {
    const TraceZone zone(zones::kPlanEngine);
    BASCULE_TRY_ASSIGN(setup_, plan_engine(*model_, engine));
  }
  log_info(
      "planned {} rank(s) on {} thread(s): activations {} ({}), cache {} for {} tokens, {} bytes",
      setup_.ranks.size(), setup_.options.n_threads, name(*setup_.options.activations),
      name(*setup_.options.scheme), name(*setup_.options.kv_dtype), setup_.options.kv_tokens,
      setup_.memory.total_bytes());
  tell(setup_.memory.notices);
  BASCULE_TRY(read_weights());
  BASCULE_TRY_ASSIGN(engine_, make_engine(*model_, setup_));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
  log_info("ready after {:.2f} s", seconds.count());
  return {};
}

Status Session::pack_weights(const EngineOptions& engine) {
  const TraceZone zone(zones::kReadWeights);
  ProgressBar bar("packing weights", !options_.flag("quiet"));
  BASCULE_TRY_ASSIGN(
      const std::vector<std::string> notices,
      pack_for(*model_, engine, options_, WeightUse::kValues, [&](int64_t done, int64_t all) {
        bar.show(done, all);
        return !Interrupt::requested();
      }));
  tell(notices);
  return {};
}

Status Session::load_tokenizer() {
  Result<std::unique_ptr<Tokenizer>> tokenizer =
      Tokenizer::from_folder(model_->checkpoint->folder());
  if (tokenizer.ok()) {
    tokenizer_ = std::move(tokenizer).value();
    glm_ = GlmPrompt::of(*tokenizer_);
    return {};
  }
  if (tokenizer.status().code() != Code::kNotFound) return tokenizer.status();
  if (options_.has("prompt-ids") && !options_.has("stop")) return {};
  return tokenizer.status().with_context(
      options_.has("stop") ? "--stop needs a tokenizer; --stop-token-ids needs none"
                           : "text needs a tokenizer; --prompt-ids needs none");
}

// What a person should know that is no error.
void Session::tell(const std::vector<std::string>& notices) const {
  for (const std::string& notice : notices)
    if (!options_.flag("quiet")) print_notice("note: {}\n", notice);
}

Status Session::finish() const {
  if (!options_.has("trace")) return {};
  BASCULE_TRY_ASSIGN(const int64_t n_lost,
                     trace::write(options_.text("trace")).with_context("--trace"));
  if (n_lost > 0) tell({fmt::format("the timeline is full: {} later zones are not in it", n_lost)});
  return {};
}

// Ids past the tokenizer's are padding of the vocabulary.
std::optional<int64_t> Session::n_valid_tokens() const {
  if (!tokenizer_) return {};
  if (tokenizer_->vocab_size() > model_->config.vocab_size)
    log_warning("the tokenizer has {} tokens and the model {}: later ones cannot be used",
                tokenizer_->vocab_size(), model_->config.vocab_size);
  return std::min<int64_t>(tokenizer_->vocab_size(), model_->config.vocab_size);
}

Status Session::read_weights() const {
  const TraceZone zone(zones::kReadWeights);
  ProgressBar bar("reading weights", !options_.flag("quiet"));
  return model_->read_ahead([&](int64_t done, int64_t all) {
    bar.show(done, all);
    return !Interrupt::requested();
  });
}

std::vector<Message> Session::opening() const {
  std::vector<Message> messages;
  if (options_.has("system")) messages.push_back({Role::kSystem, options_.text("system")});
  return messages;
}

Result<std::vector<int32_t>> Session::encode(std::span<const Message> conversation) const {
  if (is_chat()) return glm_->encode(conversation, !options_.flag("no-thinking"));
  return tokenizer_->encode_with_special(conversation.back().text);
}

Status Session::answer_ids(std::vector<int32_t> ids) {
  return status_of(answer(std::move(ids), {.as_ids = true}));
}

Status Session::answer_text(const std::string& prompt) {
  if (!is_chat() && (options_.has("system") || options_.flag("no-thinking")))
    return invalid_argument(
        glm_ ? "--raw runs the text as it is: --system and --no-thinking are of the chat format"
             : "this model's vocabulary has no GLM chat tokens: --system and --no-thinking have no "
               "effect");
  std::vector<Message> conversation = opening();
  conversation.push_back({Role::kUser, prompt});
  BASCULE_TRY_ASSIGN(std::vector<int32_t> ids, encode(conversation));
  return status_of(
      answer(std::move(ids), {.in_thinking = is_chat() && !options_.flag("no-thinking")}));
}

Status Session::converse(Input& input) {
  if (!is_chat())
    return unsupported(glm_ ? "--raw needs a prompt"
                            : "this model's vocabulary has no GLM chat tokens, so there is no "
                              "conversation; give one prompt, which runs as it is");
  print_notice("A conversation. An empty line or Ctrl-D ends it, Ctrl-C stops an answer.\n");
  std::vector<Message> conversation = opening();
  while (true) {
    print_notice("> ");
    BASCULE_TRY_ASSIGN(const std::optional<std::string> line, input.line());
    if (!line || line->empty()) return {};
    conversation.push_back({Role::kUser, *line});
    Result<std::string> said = [&]() -> Result<std::string> {
      BASCULE_TRY_ASSIGN(std::vector<int32_t> ids, encode(conversation));
      return answer(std::move(ids), {.in_thinking = !options_.flag("no-thinking")});
    }();
    if (said.ok()) {
      conversation.push_back({Role::kAssistant, *said});
    } else {  // the question is taken back, and the conversation goes on
      print_notice("{}; that question is forgotten\n", said.status().message());
      conversation.pop_back();
    }
    Interrupt::forget();
    BASCULE_TRY(flush_output());
  }
}

Result<std::string> Session::answer(std::vector<int32_t> prompt, AnswerStyle style) {
  style.colour = wants_colour(STDOUT_FILENO);
  style.quiet = options_.flag("quiet");
  style.logprobs = options_.has("logprobs");
  style.think_end = glm_ ? glm_->think_end() : -1;
  style.streams = options_.integer("n") == 1;

  RequestSpec spec = spec_;
  spec.prompt = prompt;
  std::optional<DumpRecorder> dump;
  if (options_.has("dump")) {
    BASCULE_TRY(check_dump(spec));
    spec.recorder = &dump.emplace(model_->config);
    spec.reuses_prefix = false;
  }
  std::vector<std::shared_ptr<Answer>> answers(size_t(options_.integer("n")));
  for (auto& a : answers) a = std::make_shared<Answer>(style, tokenizer_.get(), stops_);
  BASCULE_TRY_ASSIGN(const std::vector<RequestId> requests, submit(answers, spec));
  run(requests);

  for (size_t i = 0; i < answers.size(); ++i) {
    if (!style.streams) print_output("--- answer {} ---\n{}", i + 1, answers[i]->printed());
    BASCULE_TRY(flush_output());
    if (!style.quiet) print_notice("{}\n", answers[i]->summary());
  }
  for (const auto& a : answers) {
    if (a->end().reason == EndReason::kCancelled) return cancelled("stopped by Ctrl-C");
    if (a->end().reason == EndReason::kFailed) return internal(a->end().message);
  }
  if (dump) BASCULE_TRY(dump->write(options_.text("dump"), prompt, answers[0]->tokens()));
  return answers[0]->text();
}

// All of them, or none.
Result<std::vector<RequestId>> Session::submit(std::span<const std::shared_ptr<Answer>> answers,
                                               const RequestSpec& spec) {
  std::vector<RequestId> ids;
  for (const auto& a : answers) {
    RequestSpec one = spec;
    one.sampling.choice = int32_t(ids.size());
    Result<RequestId> id = engine_->submit(std::move(one), a->listener());
    if (!id.ok()) {
      for (const RequestId earlier : ids) engine_->cancel(earlier);
      engine_->run_until_idle();
      return id.status();
    }
    ids.push_back(*id);
  }
  return ids;
}

void Session::run(std::span<const RequestId> requests) {
  for (bool is_cancelled = false; engine_->step();) {
    if (is_cancelled || !Interrupt::requested()) continue;
    is_cancelled = true;
    for (const RequestId id : requests) engine_->cancel(id);
  }
}

// The rows of a dump wait in memory until the answer has ended.
Status Session::check_dump(const RequestSpec& spec) const {
  const int64_t n_positions = int64_t(spec.prompt.size()) + spec.max_tokens.value_or(1) - 1;
  const double bytes = double(n_positions) * double(DumpRecorder::position_bytes(model_->config));
  const int64_t available = HostMemory::detect().available_bytes;
  if (bytes <= double(available)) return {};
  return resource_exhausted(
      fmt::format("--dump keeps {} positions of {} bytes in memory, and {} bytes are available; a "
                  "shorter prompt or a smaller --max-tokens would do",
                  n_positions, DumpRecorder::position_bytes(model_->config), available));
}

}  // namespace bascule
