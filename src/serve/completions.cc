#include "serve/completions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "serve/fields.h"
#include "serve/json_text.h"
#include "serve/openai.h"

namespace bascule {
namespace {

constexpr size_t kMaxPrompts = 128;

struct CompletionRequest {
  Generation generation;
  OpenAiStream stream;
  bool echoes = false;
  std::vector<std::string> prompt_texts;  // where they are echoed
};

Result<std::vector<int32_t>> ids_of(const Json& list, const std::string& field) {
  std::vector<int32_t> ids;
  for (const Json& value : list) {
    BASCULE_TRY_ASSIGN(const int64_t id, as_int(value, field));
    if (id < 0 || id > INT32_MAX)
      return invalid_argument(fmt::format("{} is a list with {}, which is no token id", field, id));
    ids.push_back(int32_t(id));
  }
  return ids;
}

Result<std::vector<int32_t>> one_prompt(const Json& value, const std::string& field,
                                        const Tokenizer& tokenizer) {
  if (value.is_array()) return ids_of(value, field);
  BASCULE_TRY_ASSIGN(const std::string text, as_string(value, field));
  return tokenizer.encode_with_special(text).with_context(field);
}

// A text, token ids, or a list of either.
Result<std::vector<std::vector<int32_t>>> prompts_of(const Json& body, const Tokenizer& tokenizer) {
  const Json* prompt = find_field(body, "prompt");
  if (!prompt) return invalid_argument("prompt is missing: a text, token ids, or a list of either");
  std::vector<std::vector<int32_t>> prompts;
  const bool is_list = prompt->is_array() && !prompt->empty() && !prompt->front().is_number();
  if (!is_list) {
    BASCULE_TRY_ASSIGN(prompts.emplace_back(), one_prompt(*prompt, "prompt", tokenizer));
    return prompts;
  }
  if (prompt->size() > kMaxPrompts)
    return invalid_argument(
        fmt::format("prompt is {}; at most {} prompts are taken", describe(*prompt), kMaxPrompts));
  for (size_t i = 0; i < prompt->size(); ++i) {
    BASCULE_TRY_ASSIGN(prompts.emplace_back(),
                       one_prompt((*prompt)[i], fmt::format("prompt[{}]", i), tokenizer));
  }
  return prompts;
}

Status read_logprobs(const Json& body, SamplingParams& sampling) {
  std::optional<int64_t> logprobs;
  BASCULE_TRY(read_field(body, "logprobs", logprobs));
  if (!logprobs) return {};
  if (*logprobs < 0 || *logprobs > kMaxTopLogprobs)
    return invalid_argument(
        fmt::format("logprobs is {}; from 0 to {} can be given", *logprobs, kMaxTopLogprobs));
  sampling.logprobs = true;
  sampling.top_logprobs = int32_t(*logprobs);
  return {};
}

Status check_echo(const CompletionRequest& request) {
  if (request.echoes && request.generation.spec.sampling.logprobs)
    return unsupported(
        "echo with logprobs asks for log-probabilities of the prompt, which are not computed here; "
        "leave one of the two out");
  return {};
}

Result<CompletionRequest> read_request(const Json& body, const ServedModel& model) {
  CompletionRequest request;
  Generation& generation = request.generation;
  generation.spec = model.defaults;
  BASCULE_TRY(check_model(body, model));
  BASCULE_TRY(read_stream(body, request.stream));
  BASCULE_TRY(read_sampling(body, generation.spec));
  BASCULE_TRY(read_field(body, "max_tokens", generation.spec.max_tokens));
  BASCULE_TRY(read_stops(body, "stop", generation));
  BASCULE_TRY(read_n(body, generation));
  BASCULE_TRY(read_logprobs(body, generation.spec.sampling));
  BASCULE_TRY(read_field(body, "echo", request.echoes));
  BASCULE_TRY(check_echo(request));
  BASCULE_TRY_ASSIGN(generation.prompts, prompts_of(body, *model.tokenizer));
  if (request.echoes)
    for (const auto& prompt : generation.prompts)
      request.prompt_texts.push_back(model.tokenizer->decode(prompt));
  return request;
}

// Offsets into texts are told in characters.
size_t n_characters(std::string_view text) {
  return size_t(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

// The dialect's own form of log-probabilities: four lists side by side.
class LegacyLogprobs {
 public:
  explicit LegacyLogprobs(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void add(const TokenEvent& event, size_t text_offset) {
    tokens_.push_back(token_text(tokenizer_, event.token));
    logprobs_.push_back(event.logprob);
    offsets_.push_back(text_offset);
    std::string top = "{";
    std::vector<std::string> seen;  // two tokens may read alike, and an object has no key twice
    for (const TokenLogprob& other : event.top_logprobs) {
      const std::string text = token_text(tokenizer_, other.token);
      if (std::ranges::find(seen, text) != seen.end()) continue;
      top += seen.empty() ? "" : ",";
      append_json_string(top, text);
      top += ':';
      append_json_number(top, other.logprob);
      seen.push_back(text);
    }
    tops_.push_back(top + "}");
  }

  std::string json() const {
    std::string tokens, logprobs, offsets;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (i > 0) tokens += ',', logprobs += ',', offsets += ',';
      append_json_string(tokens, tokens_[i]);
      append_json_number(logprobs, logprobs_[i]);
      offsets += fmt::format("{}", offsets_[i]);
    }
    return fmt::format(
        R"({{"tokens":[{}],"token_logprobs":[{}],"top_logprobs":[{}],"text_offset":[{}]}})", tokens,
        logprobs, fmt::join(tops_, ","), offsets);
  }

 private:
  const Tokenizer& tokenizer_;
  std::vector<std::string> tokens_, tops_;
  std::vector<float> logprobs_;
  std::vector<size_t> offsets_;
};

// One choice of a response or of a chunk of it.
std::string choice_json(int index, std::string_view text, const std::string& logprobs,
                        std::string_view finish_reason) {
  std::string json = R"({"text":)";
  append_json_string(json, text);
  return json + fmt::format(R"(,"index":{},"logprobs":{},"finish_reason":{}}})", index, logprobs,
                            finish_reason);
}

class CompletionWriter final : public AnswerWriter {
 public:
  CompletionWriter(const Call& call, const CompletionRequest& request)
      : out_(call, request.stream, "cmpl-", "text_completion"),
        tokenizer_(*call.model.tokenizer),
        streams_(request.stream.is_on),
        has_logprobs_(request.generation.spec.sampling.logprobs) {
    for (int i = 0; i < request.generation.n_answers(); ++i)
      answers_.push_back(
          {request.echoes ? request.prompt_texts[size_t(i / request.generation.n)] : std::string(),
           0,
           LegacyLogprobs(tokenizer_),
           {}});
  }

  void begin() override {
    out_.begin();
    for (size_t i = 0; streams_ && i < answers_.size(); ++i)
      if (!answers_[i].text.empty()) send(int(i), answers_[i].text, "null");
    for (Answer& answer : answers_) answer.n_characters = n_characters(answer.text);
  }

  void add(int index, const AnswerPiece& piece) override {
    Answer& answer = answers_[size_t(index)];
    const size_t offset = answer.n_characters;
    answer.n_characters += n_characters(piece.text);
    const bool has_logprobs = has_logprobs_ && piece.token;
    if (!streams_) {
      answer.text += piece.text;
      if (has_logprobs) answer.logprobs.add(*piece.token, offset);
    } else if (has_logprobs) {
      LegacyLogprobs one(tokenizer_);
      one.add(*piece.token, offset);
      send(index, piece.text, one.json());
    } else if (!piece.text.empty()) {
      send(index, piece.text, "null");
    }
  }

  void end(int index, const Ending& ending) override {
    const std::string reason = json_quoted(finish_reason(ending));
    if (streams_)
      out_.send_chunk(choice_json(index, "", "null", reason));
    else
      answers_[size_t(index)].finish_reason = reason;
  }

  void finish(const Usage& usage) override {
    std::vector<std::string> choices;
    for (size_t i = 0; !streams_ && i < answers_.size(); ++i)
      choices.push_back(choice_json(int(i), answers_[i].text,
                                    has_logprobs_ ? answers_[i].logprobs.json() : "null",
                                    answers_[i].finish_reason));
    out_.finish(choices, usage);
  }

  void fail(const Status& status) override { out_.fail(status); }

 private:
  struct Answer {
    std::string text;
    size_t n_characters = 0;
    LegacyLogprobs logprobs;
    std::string finish_reason;
  };

  void send(int index, std::string_view text, const std::string& logprobs) {
    out_.send_chunk(choice_json(index, text, logprobs, "null"));
  }

  OpenAiReply out_;
  const Tokenizer& tokenizer_;
  bool streams_, has_logprobs_;
  std::vector<Answer> answers_;
};

}  // namespace

void complete(Call call) {
  const Result<Json> body = read_body(call);
  if (!body.ok()) return call.fail(body.status());
  Result<CompletionRequest> request = read_request(*body, call.model);
  if (!request.ok()) return call.fail(request.status());
  auto writer = std::make_unique<CompletionWriter>(call, *request);
  const Status status = generate(*call.model.engine, *call.model.tokenizer, call.metrics,
                                 std::move(request->generation), *call.reply, std::move(writer));
  if (!status.ok()) call.fail(status);
}

}  // namespace bascule
