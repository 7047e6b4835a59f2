#include "serve/chat.h"

#include <fmt/format.h>

#include <utility>

#include "base/quote.h"
#include "serve/fields.h"
#include "serve/json_text.h"
#include "serve/openai.h"

namespace bascule {
namespace {

constexpr size_t kMaxMessages = 65536;

struct ChatRequest {
  Generation generation;
  OpenAiStream stream;
};

Result<Role> role_of(const Json& message, const std::string& where) {
  std::string role;
  BASCULE_TRY(read_field(message, "role", role).with_context(where));
  if (role == "system" || role == "developer") return Role::kSystem;
  if (role == "user") return Role::kUser;
  if (role == "assistant") return Role::kAssistant;
  return invalid_argument(
      fmt::format("{}: role is {}; system, developer, user or assistant is wanted", where,
                  in_quotes(role, 40)));
}

// A text, nothing, or a list of parts that are texts.
Result<std::string> text_of(const Json& message, const std::string& where) {
  const Json* content = find_field(message, "content");
  if (!content) return std::string();
  if (!content->is_array()) return as_string(*content, where + ".content");
  std::string text;
  for (const Json& part : *content) {
    std::string type;
    if (part.is_object()) BASCULE_TRY(read_field(part, "type", type).with_context(where));
    if (type != "text")
      return unsupported(fmt::format(
          "{}.content has a part of type {}; only text is read here, no images and no sound", where,
          in_quotes(type, 40)));
    std::string piece;
    BASCULE_TRY(read_field(part, "text", piece).with_context(where));
    text += piece;
  }
  return text;
}

Result<std::vector<Message>> messages_of(const Json& body) {
  const Json* list = find_field(body, "messages");
  if (!list || !list->is_array() || list->empty() || list->size() > kMaxMessages)
    return invalid_argument(fmt::format("messages is {}; a list of 1 to {} messages is wanted",
                                        list ? describe(*list) : "missing", kMaxMessages));
  std::vector<Message> messages;
  for (size_t i = 0; i < list->size(); ++i) {
    const Json& message = (*list)[i];
    const std::string where = fmt::format("messages[{}]", i);
    if (!message.is_object())
      return invalid_argument(
          fmt::format("{} is {}; an object is wanted", where, describe(message)));
    if (find_field(message, "tool_calls"))
      return unsupported(where + ": tool_calls are not supported yet");
    Message& said = messages.emplace_back();
    BASCULE_TRY_ASSIGN(said.role, role_of(message, where));
    BASCULE_TRY_ASSIGN(said.text, text_of(message, where));
  }
  return messages;
}

// Thinking is on unless one of the ways in which clients switch it off says so.
Result<bool> wants_thinking(const Json& body) {
  bool thinking = true;
  BASCULE_TRY(read_field(body, "enable_thinking", thinking));
  if (const Json* options = find_field(body, "chat_template_kwargs")) {
    if (!options->is_object())
      return invalid_argument(
          fmt::format("chat_template_kwargs is {}; an object is wanted", describe(*options)));
    BASCULE_TRY(
        read_field(*options, "enable_thinking", thinking).with_context("chat_template_kwargs"));
  }
  std::string effort;
  BASCULE_TRY(read_field(body, "reasoning_effort", effort));
  return thinking && effort != "none";
}

Status read_logprobs(const Json& body, SamplingParams& sampling) {
  BASCULE_TRY(read_field(body, "logprobs", sampling.logprobs));
  BASCULE_TRY(read_field(body, "top_logprobs", sampling.top_logprobs));
  if (sampling.top_logprobs < 0 || sampling.top_logprobs > kMaxTopLogprobs)
    return invalid_argument(fmt::format("top_logprobs is {}; from 0 to {} can be given",
                                        sampling.top_logprobs, kMaxTopLogprobs));
  if (sampling.top_logprobs > 0 && !sampling.logprobs)
    return invalid_argument("top_logprobs is of logprobs: set logprobs to true as well");
  return {};
}

Result<ChatRequest> read_request(const Json& body, const ServedModel& model) {
  if (!model.glm)
    return unsupported(
        "this model's vocabulary has no GLM chat tokens, so there is no conversation with it; "
        "/v1/completions continues texts");
  ChatRequest request;
  Generation& generation = request.generation;
  generation.spec = model.defaults;
  BASCULE_TRY(check_model(body, model));
  BASCULE_TRY(read_stream(body, request.stream));
  BASCULE_TRY(read_sampling(body, generation.spec));
  BASCULE_TRY(read_field(body, "max_tokens", generation.spec.max_tokens));
  BASCULE_TRY(read_field(body, "max_completion_tokens", generation.spec.max_tokens));
  BASCULE_TRY(read_stops(body, "stop", generation));
  BASCULE_TRY(read_n(body, generation));
  BASCULE_TRY(read_logprobs(body, generation.spec.sampling));
  BASCULE_TRY_ASSIGN(const bool thinking, wants_thinking(body));
  BASCULE_TRY_ASSIGN(const std::vector<Message> messages, messages_of(body));
  BASCULE_TRY_ASSIGN(generation.prompts.emplace_back(), model.glm->encode(messages, thinking));
  generation.marks = {.end = model.glm->think_end(), .is_open = thinking};
  return request;
}

// A token with its log-probability and its bytes, which may be a part of a character.
void append_token(std::string& out, const Tokenizer& tokenizer, int32_t token, float logprob) {
  out += R"({"token":)";
  append_json_string(out, token_text(tokenizer, token));
  out += R"(,"logprob":)";
  append_json_number(out, logprob);
  out += R"(,"bytes":[)";
  bool is_first = true;
  for (const unsigned char byte : token_bytes(tokenizer, token)) {
    out += fmt::format("{}{}", is_first ? "" : ",", byte);
    is_first = false;
  }
  out += ']';
}

std::string logprob_json(const TokenEvent& event, const Tokenizer& tokenizer) {
  std::string json;
  append_token(json, tokenizer, event.token, event.logprob);
  json += R"(,"top_logprobs":[)";
  for (size_t i = 0; i < event.top_logprobs.size(); ++i) {
    if (i > 0) json += ',';
    append_token(json, tokenizer, event.top_logprobs[i].token, event.top_logprobs[i].logprob);
    json += '}';
  }
  return json + "]}";
}

std::string logprobs_json(std::string_view entries) {
  return fmt::format(R"({{"content":[{}],"refusal":null}})", entries);
}

class ChatWriter final : public AnswerWriter {
 public:
  ChatWriter(const Call& call, const ChatRequest& request)
      : out_(call, request.stream, "chatcmpl-", "chat.completion"),
        tokenizer_(*call.model.tokenizer),
        streams_(request.stream.is_on),
        has_logprobs_(request.generation.spec.sampling.logprobs),
        answers_(size_t(request.generation.n_answers())) {}

  void begin() override {
    out_.begin();
    for (size_t i = 0; streams_ && i < answers_.size(); ++i)
      send(int(i), R"({"role":"assistant","content":""})", "null", "null");
  }

  void add(int index, const AnswerPiece& piece) override {
    std::string entry;
    if (has_logprobs_ && piece.token && !piece.in_reasoning)
      entry = logprob_json(*piece.token, tokenizer_);
    streams_ ? stream(index, piece, entry) : keep(answers_[size_t(index)], piece, entry);
  }

  void end(int index, const Ending& ending) override {
    const std::string reason = fmt::format("\"{}\"", finish_reason(ending));
    if (streams_)
      send(index, "{}", "null", reason);
    else
      answers_[size_t(index)].finish_reason = reason;
  }

  void finish(const Usage& usage) override {
    std::vector<std::string> choices;
    for (size_t i = 0; !streams_ && i < answers_.size(); ++i)
      choices.push_back(choice_json(int(i), answers_[i]));
    out_.finish(choices, usage);
  }

  void fail(const Status& status) override { out_.fail(status); }

 private:
  struct Answer {
    std::string reasoning, text, logprobs, finish_reason;
  };

  static void keep(Answer& answer, const AnswerPiece& piece, const std::string& logprobs) {
    answer.reasoning += piece.reasoning;
    answer.text += piece.text;
    if (!answer.logprobs.empty() && !logprobs.empty()) answer.logprobs += ',';
    answer.logprobs += logprobs;
  }

  void stream(int index, const AnswerPiece& piece, const std::string& logprobs) {
    if (!piece.reasoning.empty())
      send(index, delta("reasoning_content", piece.reasoning), "null", "null");
    if (!piece.text.empty() || !logprobs.empty())
      send(index, delta("content", piece.text), logprobs.empty() ? "null" : logprobs_json(logprobs),
           "null");
  }

  static std::string delta(std::string_view field, std::string_view text) {
    std::string json = "{\"";
    json.append(field).append("\":");
    append_json_string(json, text);
    return json + '}';
  }

  void send(int index, std::string_view delta, std::string_view logprobs, std::string_view reason) {
    out_.send_chunk(fmt::format(R"({{"index":{},"delta":{},"logprobs":{},"finish_reason":{}}})",
                                index, delta, logprobs, reason));
  }

  std::string choice_json(int index, const Answer& answer) const {
    std::string message = R"({"role":"assistant","content":)";
    append_json_string(message, answer.text);
    if (!answer.reasoning.empty()) {
      message += R"(,"reasoning_content":)";
      append_json_string(message, answer.reasoning);
    }
    return fmt::format(
        R"({{"index":{},"message":{},"refusal":null}},"logprobs":{},"finish_reason":{}}})", index,
        message, has_logprobs_ ? logprobs_json(answer.logprobs) : "null", answer.finish_reason);
  }

  OpenAiReply out_;
  const Tokenizer& tokenizer_;
  bool streams_, has_logprobs_;
  std::vector<Answer> answers_;
};

}  // namespace

void chat(Call call) {
  const Result<Json> body = read_body(call);
  if (!body.ok()) return call.fail(body.status());
  Result<ChatRequest> request = read_request(*body, call.model);
  if (!request.ok()) return call.fail(request.status());
  auto writer = std::make_unique<ChatWriter>(call, *request);
  const Status status = generate(*call.model.engine, *call.model.tokenizer, call.metrics,
                                 std::move(request->generation), *call.reply, std::move(writer));
  if (!status.ok()) call.fail(status);
}

}  // namespace bascule
