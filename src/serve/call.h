// What every dialect works with: the model that is served, and one request for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "serve/api_error.h"
#include "serve/generation.h"
#include "serve/http/reply.h"
#include "serve/metrics.h"
#include "text/glm_prompt.h"
#include "text/tokenizer.h"

namespace bascule {

// The engine runs on its own thread. All of it outlives the server.
struct ServedModel {
  Engine* engine = nullptr;
  const Tokenizer* tokenizer = nullptr;
  const GlmPrompt* glm = nullptr;  // null: the vocabulary has no chat tokens
  std::string name;
  std::string plan_json;  // what GET /v1/plan answers
  std::string version;    // the program's
  RequestSpec defaults;   // of what a request leaves open
  int64_t created = 0;    // seconds since 1970: when it was loaded
};

// One request on its way, and how it is answered: once, by send(), fail() or through the reply.
struct Call {
  const ServedModel& model;
  Metrics& metrics;
  HttpRequest request;
  std::shared_ptr<HttpReply> reply;
  std::vector<HttpHeader> headers;  // of the answer, whatever it is

  void send(std::string body, std::string content_type = "application/json") const;
  void fail(const ApiError& error) const;
  void fail(const Status& status) const { fail(api_error(status)); }
};

// The body as a JSON object whose fields are those of the call's dialect; notes what is ignored in
// the answer's headers.
Result<Json> read_body(Call& call);

// Refuses another model than the one that is here.
Status check_model(const Json& body, const ServedModel& model);

// The fields that the dialects share, over the model's defaults: sampling, stops, n.
Status read_sampling(const Json& body, RequestSpec& spec);
Status read_stops(const Json& body, std::string_view field, Generation& generation);
Status read_n(const Json& body, Generation& generation);

// "cmpl-" and 24 hexadecimal digits.
std::string fresh_name(std::string_view prefix);

int64_t unix_seconds();

}  // namespace bascule
