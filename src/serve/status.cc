#include "serve/status.h"

#include <fmt/format.h>

#include "serve/fields.h"
#include "serve/json_text.h"

namespace bascule {
namespace {

Result<std::string> tokens_json(Call& call) {
  BASCULE_TRY_ASSIGN(const Json body, read_body(call));
  BASCULE_TRY(check_model(body, call.model));
  std::string text;
  BASCULE_TRY(read_field(body, "prompt", text));
  BASCULE_TRY_ASSIGN(const std::vector<int32_t> ids,
                     call.model.tokenizer->encode_with_special(text).with_context("prompt"));
  return fmt::format(R"({{"count":{},"max_model_len":{},"tokens":[{}]}})", ids.size(),
                     call.model.engine->max_request_tokens(), fmt::join(ids, ","));
}

Result<std::string> text_json(Call& call) {
  BASCULE_TRY_ASSIGN(const Json body, read_body(call));
  BASCULE_TRY(check_model(body, call.model));
  const Json* tokens = find_field(body, "tokens");
  if (!tokens || !tokens->is_array())
    return invalid_argument(fmt::format("tokens is {}; a list of token ids is wanted",
                                        tokens ? describe(*tokens) : "missing"));
  std::vector<int32_t> ids;
  for (const Json& token : *tokens) {
    BASCULE_TRY_ASSIGN(const int64_t id, as_int(token, "tokens"));
    if (id < 0 || id >= call.model.tokenizer->vocab_size())
      return invalid_argument(fmt::format("tokens is a list with {}: ids are from 0 to {}", id,
                                          call.model.tokenizer->vocab_size() - 1));
    ids.push_back(int32_t(id));
  }
  return fmt::format(R"({{"prompt":{}}})", json_quoted(call.model.tokenizer->decode(ids)));
}

void answer(const Call& call, const Result<std::string>& json) {
  json.ok() ? call.send(*json) : call.fail(json.status());
}

}  // namespace

void list_models(Call call) {
  call.send(fmt::format(
      R"({{"object":"list","data":[{{"id":{},"object":"model","created":{},"owned_by":"bascule",)"
      R"("max_model_len":{}}}]}})",
      json_quoted(call.model.name), call.model.created, call.model.engine->max_request_tokens()));
}

void tokenize(Call call) {
  const Result<std::string> json = tokens_json(call);
  answer(call, json);
}

void detokenize(Call call) {
  const Result<std::string> json = text_json(call);
  answer(call, json);
}

}  // namespace bascule
