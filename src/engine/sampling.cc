#include "engine/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace bascule {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Status check_range(const char* field, float value, float low, float high) {
  if (value >= low && value <= high) return {};
  return invalid_argument(fmt::format("{} {}: from {} to {}", field, value, low, high));
}

// Larger logit first, then lower id.
auto by_likelihood(std::span<const float> x) {
  return [x](int32_t a, int32_t b) { return x[a] != x[b] ? x[a] > x[b] : a < b; };
}

int32_t most_likely(std::span<const float> x) {
  int32_t best = -1;
  float highest = -kInfinity;
  for (int32_t i = 0; i < int32_t(x.size()); ++i)
    if (x[i] > highest) highest = x[best = i];
  return best;
}

bool has_fault(View<const float, 1> logits) {
  bool sound = true;
  for (int64_t i = 0; i < logits.extent[0]; ++i) sound &= logits.data[i] < kInfinity;
  return !sound;
}

// Uniform in [0, 1): 53 bits of the draw for one token.
double uniform(uint64_t seed, int32_t choice, int64_t position) {
  const auto words =
      philox({uint32_t(position), uint32_t(uint64_t(position) >> 32), uint32_t(choice), 0},
             {uint32_t(seed), uint32_t(seed >> 32)});
  const uint64_t bits = uint64_t{words[1]} << 32 | words[0];
  return double(bits >> 11) * 0x1p-53;
}

// Log-softmax of the model's own row, for the chosen token and the likeliest ones.
void fill_logprobs(View<const float, 1> logits, int32_t n_top, Sampled& sampled) {
  const std::span<const float> x(logits.data, size_t(logits.extent[0]));
  const double highest = x[most_likely(x)];
  double sum = 0;
  for (const float logit : x) sum += std::exp(double(logit) - highest);
  const double log_sum = highest + std::log(sum);

  sampled.logprob = float(double(x[sampled.token]) - log_sum);
  // Insertion into a short sorted list; ids ascend, so an equal logit stays behind.
  for (int32_t id = 0; id < int32_t(x.size()); ++id) {
    if (sampled.n_top == n_top && (n_top == 0 || x[id] <= x[sampled.top[n_top - 1].token]))
      continue;
    int32_t at = sampled.n_top < n_top ? sampled.n_top++ : n_top - 1;
    for (; at > 0 && x[sampled.top[at - 1].token] < x[id]; --at)
      sampled.top[at] = sampled.top[at - 1];
    sampled.top[at] = {id, float(double(x[id]) - log_sum)};
  }
}

}  // namespace

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {uint32_t(b >> 32) ^ c[1] ^ key[0], uint32_t(b), uint32_t(a >> 32) ^ c[3] ^ key[1],
         uint32_t(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return c;
}

Status validate(const SamplingParams& p, int64_t vocab_size) {
  constexpr float kMost = std::numeric_limits<float>::max();
  BASCULE_TRY(check_range("temperature", p.temperature, 0, kMost));
  BASCULE_TRY(check_range("min_p", p.min_p, 0, 1));
  BASCULE_TRY(check_range("presence_penalty", p.presence_penalty, -2, 2));
  BASCULE_TRY(check_range("frequency_penalty", p.frequency_penalty, -2, 2));
  if (!(p.top_p > 0 && p.top_p <= 1))
    return invalid_argument(fmt::format("top_p {}: above 0, and 1 at most", p.top_p));
  if (!(p.repetition_penalty > 0 && p.repetition_penalty <= kMost))
    return invalid_argument(
        fmt::format("repetition_penalty {}: above 0; 1 changes nothing", p.repetition_penalty));
  if (p.top_k < 0) return invalid_argument(fmt::format("top_k {}: 0 (all) or more", p.top_k));
  if (p.choice < 0) return invalid_argument(fmt::format("choice {}: 0 or more", p.choice));
  if (p.top_logprobs < 0 || p.top_logprobs > kMaxTopLogprobs)
    return invalid_argument(
        fmt::format("top_logprobs {}: from 0 to {}", p.top_logprobs, kMaxTopLogprobs));
  if (p.top_logprobs > 0 && !p.logprobs)
    return invalid_argument("top_logprobs without logprobs: ask for both");
  for (const auto& [token, bias] : p.logit_bias) {
    if (token < 0 || token >= vocab_size)
      return out_of_range(
          fmt::format("logit_bias for token {}: ids are from 0 to {}", token, vocab_size - 1));
    BASCULE_TRY(
        check_range("logit_bias", bias, -100, 100).with_context(fmt::format("token {}", token)));
  }
  return {};
}

Sampler::Sampler(SamplingParams params, uint64_t seed, std::span<const int32_t> prompt,
                 int64_t vocab_size, int64_t n_valid_tokens)
    : params_(std::move(params)),
      seed_(params_.seed.value_or(seed)),
      n_valid_tokens_(std::min(n_valid_tokens, vocab_size)),
      has_penalties_(params_.presence_penalty != 0 || params_.frequency_penalty != 0 ||
                     params_.repetition_penalty != 1) {
  if (!has_penalties_) return;
  n_in_answer_.assign(size_t(vocab_size), 0);
  is_known_.assign(size_t(vocab_size), false);
  distinct_.reserve(size_t(vocab_size));
  for (const int32_t token : prompt) note(token);
}

void Sampler::note(int32_t token) {
  if (is_known_[token]) return;
  is_known_[token] = true;
  distinct_.push_back(token);
}

void Sampler::accept(int32_t token) {
  if (!has_penalties_) return;
  note(token);
  ++n_in_answer_[token];
}

Sampled Sampler::sample(View<const float, 1> logits, int64_t position,
                        std::span<const int32_t> masked, SamplingScratch& scratch) const {
  Sampled result;
  if (has_fault(logits)) {
    result.fault = Sampled::Fault::kNotANumber;
    return result;
  }
  const size_t n = size_t(n_valid_tokens_);
  if (params_.temperature == 0 && masked.empty() && !changes_logits()) {
    result.token = most_likely({logits.data, n});
  } else {
    const std::span<float> x = std::span(scratch.weights).first(n);
    std::copy_n(logits.data, n, x.begin());
    adjust(x, masked);
    result.token = params_.temperature == 0 ? most_likely(x) : draw(x, position, scratch.order);
  }
  if (result.token < 0) {
    result.fault = Sampled::Fault::kNothingAllowed;
  } else if (params_.logprobs) {
    fill_logprobs(logits, params_.top_logprobs, result);
  }
  return result;
}

bool Sampler::changes_logits() const { return has_penalties_ || !params_.logit_bias.empty(); }

// Steps 1 to 4.
void Sampler::adjust(std::span<float> x, std::span<const int32_t> masked) const {
  for (const int32_t token : distinct_) {
    if (size_t(token) >= x.size()) continue;
    float& logit = x[token];
    logit = logit > 0 ? logit / params_.repetition_penalty : logit * params_.repetition_penalty;
    if (const int32_t n = n_in_answer_[token]; n > 0)
      logit -= params_.presence_penalty + params_.frequency_penalty * float(n);
  }
  for (const auto& [token, bias] : params_.logit_bias)
    if (size_t(token) < x.size()) x[token] += bias;
  for (const int32_t token : masked)
    if (size_t(token) < x.size()) x[token] = -kInfinity;
}

// Steps 5 to 9, in place: x becomes weights, relative to the likeliest token's 1. -1: none is left.
int32_t Sampler::draw(std::span<float> x, int64_t position, std::span<int32_t> order) const {
  const int32_t best = most_likely(x);
  if (best < 0) return -1;
  const float highest = x[best];
  for (float& v : x) v = std::exp((v - highest) / params_.temperature);
  order = candidates(x, order);

  double kept = 0;
  for (const int32_t i : order) kept += x[i];
  double left = uniform(seed_, params_.choice, position) * kept;
  for (const int32_t i : order)
    if ((left -= x[i]) < 0) return i;
  return order.back();
}

// The ids that top_k, top_p and min_p leave, written to `order`: likeliest first, or by id where
// min_p alone cuts.
std::span<int32_t> Sampler::candidates(std::span<const float> x, std::span<int32_t> order) const {
  const bool sorts = params_.top_k > 0 || params_.top_p < 1;
  // Whatever top_p keeps is no rarer than the average of what it leaves out, so that only few
  // need to be sorted. top_k changes the shares: it looks at all.
  double total = 0;
  for (const float weight : x) total += weight;
  double least = params_.min_p;
  if (params_.top_k > 0)
    least = 0;
  else if (sorts)
    least = 0.999 * (1 - double(params_.top_p)) * total / double(x.size());
  size_t n = 0;
  for (int32_t i = 0; i < int32_t(x.size()); ++i)
    if (x[i] > 0 && x[i] >= least) order[n++] = i;
  order = order.first(n);
  if (!sorts) return order;

  if (params_.top_k > 0 && size_t(params_.top_k) < n) {
    std::nth_element(order.begin(), order.begin() + params_.top_k, order.end(), by_likelihood(x));
    order = order.first(size_t(params_.top_k));
    total = 0;
    for (const int32_t i : order) total += x[i];
  }
  std::sort(order.begin(), order.end(), by_likelihood(x));
  double share = 0;
  for (n = 0; n < order.size() && share < params_.top_p * total && x[order[n]] >= params_.min_p;)
    share += x[order[n++]];
  return order.first(n);
}

}  // namespace bascule
