#include "serve/call.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <random>
#include <utility>

#include "base/quote.h"
#include "serve/fields.h"

namespace bascule {
namespace {

constexpr int kMaxAnswers = 128;
constexpr size_t kMaxStops = 1024, kMaxBiases = 4096;

// {"42": -1.5}
Status read_logit_bias(const Json& body, SamplingParams& sampling) {
  const Json* field = find_field(body, "logit_bias");
  if (!field) return {};
  if (!field->is_object() || field->size() > kMaxBiases)
    return invalid_argument(
        fmt::format("logit_bias is {}; an object of at most {} numbers by token id is wanted",
                    describe(*field), kMaxBiases));
  for (const auto& [key, value] : field->items()) {
    int32_t token = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (error != std::errc() || end != key.data() + key.size())
      return invalid_argument(fmt::format("logit_bias: {} is no token id", in_quotes(key, 40)));
    BASCULE_TRY_ASSIGN(const double bias, as_double(value, "logit_bias: " + key));
    sampling.logit_bias.emplace_back(token, float(bias));
  }
  return {};
}

Status read_stop_tokens(const Json& body, RequestSpec& spec) {
  const Json* field = find_field(body, "stop_token_ids");
  if (!field) return {};
  if (!field->is_array() || field->size() > kMaxStops)
    return invalid_argument(
        fmt::format("stop_token_ids is {}; a list of at most {} token ids is wanted",
                    describe(*field), kMaxStops));
  for (const Json& value : *field) {
    BASCULE_TRY_ASSIGN(const int64_t token, as_int(value, "stop_token_ids"));
    if (token < 0 || token > INT32_MAX)
      return invalid_argument(fmt::format("stop_token_ids: {} is no token id", token));
    spec.stop_tokens.push_back(int32_t(token));
  }
  return {};
}

}  // namespace

void Call::send(std::string body, std::string content_type) const {
  metrics.count_response(200);
  reply->send(
      {.content_type = std::move(content_type), .headers = headers, .body = std::move(body)});
}

void Call::fail(const ApiError& error) const {
  metrics.count_response(error.status);
  HttpResponse response = error_response(error, error_shape_of(request.path));
  response.headers.insert(response.headers.end(), headers.begin(), headers.end());
  reply->note(in_quotes(error.message));
  reply->send(std::move(response));
}

Result<Json> read_body(Call& call) {
  constexpr JsonLimits kLimits = {.max_depth = 128};
  BASCULE_TRY_ASSIGN(Json body, parse_json(call.request.body, "the request's body", kLimits));
  if (!body.is_object())
    return invalid_argument(
        fmt::format("the request's body is {}; an object is wanted", describe(body)));
  BASCULE_TRY_ASSIGN(const std::vector<std::string> ignored,
                     check_fields(body, api_dialect_of(call.request.path)));
  if (!ignored.empty())
    call.headers.push_back({"x-bascule-ignored", fmt::format("{}", fmt::join(ignored, ", "))});
  return body;
}

Status check_model(const Json& body, const ServedModel& model) {
  std::string name = model.name;
  BASCULE_TRY(read_field(body, "model", name));
  if (name == model.name) return {};
  return not_found(fmt::format("model is {}, which is not here; this server has {}",
                               in_quotes(name, 100), in_quotes(model.name)));
}

Status read_sampling(const Json& body, RequestSpec& spec) {
  SamplingParams& s = spec.sampling;
  BASCULE_TRY(read_field(body, "temperature", s.temperature));
  BASCULE_TRY(read_field(body, "top_p", s.top_p));
  BASCULE_TRY(read_field(body, "top_k", s.top_k));
  if (s.top_k == -1) s.top_k = 0;  // as vLLM's clients say "all"
  BASCULE_TRY(read_field(body, "min_p", s.min_p));
  BASCULE_TRY(read_field(body, "presence_penalty", s.presence_penalty));
  BASCULE_TRY(read_field(body, "frequency_penalty", s.frequency_penalty));
  BASCULE_TRY(read_field(body, "repetition_penalty", s.repetition_penalty));
  BASCULE_TRY(read_logit_bias(body, s));
  std::optional<int64_t> seed;
  BASCULE_TRY(read_field(body, "seed", seed));
  if (seed) s.seed = uint64_t(*seed);
  BASCULE_TRY(read_field(body, "min_tokens", spec.min_tokens));
  BASCULE_TRY(read_field(body, "ignore_eos", spec.ignore_eos));
  return read_stop_tokens(body, spec);
}

Status read_stops(const Json& body, std::string_view field, Generation& generation) {
  std::vector<std::string> stops;
  BASCULE_TRY(read_strings(body, field, kMaxStops, stops));
  BASCULE_TRY_ASSIGN(generation.stops,
                     StopStrings::compile(stops).with_context(std::string(field)));
  bool keeps = false;
  BASCULE_TRY(read_field(body, "include_stop_str_in_output", keeps));
  generation.stop_text = keeps ? StopText::kKeep : StopText::kCut;
  return {};
}

Status read_n(const Json& body, Generation& generation) {
  BASCULE_TRY(read_field(body, "n", generation.n));
  if (generation.n < 1 || generation.n > kMaxAnswers)
    return invalid_argument(
        fmt::format("n is {}; from 1 to {} answers are given", generation.n, kMaxAnswers));
  return {};
}

std::string fresh_name(std::string_view prefix) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return fmt::format("{}{:016x}{:08x}", prefix, random(), uint32_t(random()));
}

int64_t unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

}  // namespace bascule
