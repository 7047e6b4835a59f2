// What OpenAI's two older dialects share: chunks, usage, log-probabilities.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serve/call.h"

namespace bascule {

struct OpenAiStream {
  bool is_on = false;
  bool includes_usage = false;
};

// "stream" and "stream_options".
Status read_stream(const Json& body, OpenAiStream& stream);

std::string_view finish_reason(const Ending& ending);  // "stop"

// {"prompt_tokens": ...}
std::string usage_json(const Usage& usage);

// What a token adds to text, U+FFFD for parts of characters; and the bytes themselves.
std::string token_text(const Tokenizer& tokenizer, int32_t token);
std::string token_bytes(const Tokenizer& tokenizer, int32_t token);

// The reply of either dialect, whole or in chunks of {"id": ..., "choices": [...]}.
class OpenAiReply {
 public:
  // `kind` is "chat.completion"; chunks are "chat.completion.chunk" but for "text_completion".
  OpenAiReply(const Call& call, const OpenAiStream& stream, std::string_view id_prefix,
              std::string_view kind);

  void begin();
  void send_chunk(std::string_view choice);  // of a stream
  // `choices` of a reply that is no stream.
  void finish(const std::vector<std::string>& choices, const Usage& usage);
  void fail(const Status& status);

 private:
  Call call_;
  OpenAiStream stream_;
  std::string head_;  // {"id":...,"choices":[
};

}  // namespace bascule
