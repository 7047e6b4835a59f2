#include "apps/request_options.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "apps/model_arguments.h"
#include "apps/terminal.h"
#include "base/quote.h"

namespace bascule {
namespace {

constexpr size_t kMaxIdsBytes = size_t{64} << 20;  // of a file of token ids

// "42:-1.5"
std::optional<std::pair<int32_t, float>> bias_of(std::string_view text) {
  std::pair<int32_t, float> bias;
  const char* end = text.data() + text.size();
  const auto id = std::from_chars(text.data(), end, bias.first);
  if (id.ec != std::errc() || id.ptr == end || *id.ptr != ':') return {};
  const auto value = std::from_chars(id.ptr + 1, end, bias.second);
  if (value.ec != std::errc() || value.ptr != end || !std::isfinite(bias.second)) return {};
  return bias;
}

}  // namespace

Result<RunWords> split_words(const std::vector<std::string>& words) {
  RunWords result;
  size_t next = 0;
  if (next < words.size() && looks_like_model(words[next])) result.model = words[next++];
  if (next < words.size()) result.prompt = words[next++];
  if (next == words.size()) return result;
  if (next == 1)
    return invalid_argument(fmt::format(
        "{} is no folder and no ORG/NAME, so it is the prompt, and {} after it is one word too "
        "many; a prompt of several words needs quotes",
        in_quotes(words[0]), in_quotes(words[1])));
  return invalid_argument(
      fmt::format("{} comes after the prompt {}; a prompt of several words needs quotes",
                  in_quotes(words[next]), in_quotes(*result.prompt)));
}

Result<std::vector<int32_t>> prompt_ids(const std::string& text) {
  std::string list = text;
  if (text.starts_with('@')) {
    BASCULE_TRY_ASSIGN(list, read_file(text.substr(1), kMaxIdsBytes).with_context("--prompt-ids"));
  }
  BASCULE_TRY_ASSIGN(std::vector<int32_t> ids, parse_ids(list).with_context("--prompt-ids"));
  if (ids.empty()) return invalid_argument("--prompt-ids: there is no token id in it");
  return ids;
}

Result<std::vector<std::pair<int32_t, float>>> parse_logit_bias(std::string_view text) {
  std::vector<std::pair<int32_t, float>> result;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    const auto bias = bias_of(part);
    if (!bias)
      return invalid_argument(
          fmt::format("--logit-bias: {} is not ID:X, such as 42:-1.5", in_quotes(part, 40)));
    result.push_back(*bias);
    text.remove_prefix(std::min(part.size() + 1, text.size()));
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
  BASCULE_TRY_ASSIGN(s.logit_bias, parse_logit_bias(o.text("logit-bias")));
  if (o.has("seed")) s.seed = uint64_t(o.integer("seed"));
  s.logprobs = o.has("logprobs");
  if (s.logprobs) s.top_logprobs = int32_t(o.integer("logprobs"));
  return spec;
}

}  // namespace bascule
