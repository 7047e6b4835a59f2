#include "serve/openai.h"

#include <fmt/format.h>

#include "serve/fields.h"
#include "serve/json_text.h"
#include "text/utf8.h"

namespace bascule {

Status read_stream(const Json& body, OpenAiStream& stream) {
  BASCULE_TRY(read_field(body, "stream", stream.is_on));
  const Json* options = find_field(body, "stream_options");
  if (!options) return {};
  if (!options->is_object())
    return invalid_argument(
        fmt::format("stream_options is {}; an object is wanted", describe(*options)));
  if (!stream.is_on)
    return invalid_argument("stream_options is of streams: set stream to true, or leave it out");
  return read_field(*options, "include_usage", stream.includes_usage)
      .with_context("stream_options");
}

std::string_view finish_reason(const Ending& ending) {
  return ending.reason == EndReason::kLength ? "length" : "stop";
}

std::string usage_json(const Usage& usage) {
  return fmt::format(R"({{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},)"
                     R"("prompt_tokens_details":{{"cached_tokens":{}}},)"
                     R"("completion_tokens_details":{{"reasoning_tokens":{}}}}})",
                     usage.n_prompt_tokens, usage.n_answer_tokens,
                     usage.n_prompt_tokens + usage.n_answer_tokens, usage.n_cached_tokens,
                     usage.n_reasoning_tokens);
}

std::string token_bytes(const Tokenizer& tokenizer, int32_t token) {
  const auto found = tokenizer.token_of(token);
  return found ? std::string(found->piece) : std::string();
}

std::string token_text(const Tokenizer& tokenizer, int32_t token) {
  Utf8Stream utf8;
  std::string text;
  utf8.push(token_bytes(tokenizer, token), text);
  utf8.finish(text);
  return text;
}

OpenAiReply::OpenAiReply(const Call& call, const OpenAiStream& stream, std::string_view id_prefix,
                         std::string_view kind)
    : call_(call), stream_(stream) {
  call_.request.body = {};  // read already, and it may be large
  const bool is_chunk = stream.is_on && kind != "text_completion";
  head_ = fmt::format(R"({{"id":"{}","object":"{}{}","created":{},"model":{},"choices":[)",
                      fresh_name(id_prefix), kind, is_chunk ? ".chunk" : "", unix_seconds(),
                      json_quoted(call.model.name));
}

void OpenAiReply::begin() {
  if (!stream_.is_on) return;
  call_.metrics.count_response(200);
  call_.reply->begin_events(call_.headers);
}

void OpenAiReply::send_chunk(std::string_view choice) {
  std::string event = "data: ";
  event.append(head_).append(choice).append("]");
  // With usage asked for, every chunk has the field: null until the last.
  event += stream_.includes_usage ? ",\"usage\":null}\n\n" : "}\n\n";
  call_.reply->write(event);
}

void OpenAiReply::finish(const std::vector<std::string>& choices, const Usage& usage) {
  call_.reply->note(fmt::format("prompt_tokens={} answer_tokens={}", usage.n_prompt_tokens,
                                usage.n_answer_tokens));
  if (!stream_.is_on)
    return call_.send(
        fmt::format("{}{}],\"usage\":{}}}", head_, fmt::join(choices, ","), usage_json(usage)));
  if (stream_.includes_usage)
    call_.reply->write(fmt::format("data: {}],\"usage\":{}}}\n\n", head_, usage_json(usage)));
  call_.reply->write("data: [DONE]\n\n");
  call_.reply->end();
}

void OpenAiReply::fail(const Status& status) {
  if (!stream_.is_on) return call_.fail(status);
  call_.reply->note("failed after its begin");
  call_.reply->write(
      fmt::format("data: {}\n\n", error_json(api_error(status), ErrorShape::kOpenAi)));
  call_.reply->end();
}

}  // namespace bascule
