// How a request's next token is chosen from its logits. The rules of one request, applied to one
// row of logits, in this order:
//   1. repetition penalty: logits of tokens in prompt or answer, divided by it where positive, else
//      multiplied (Keskar et al. 2019)
//   2. presence and frequency penalty: subtracted for tokens in the answer, once, and per
//   occurrence
//   3. logit_bias, added
//   4. masks: ids past the tokenizer's vocabulary; while the answer is shorter than min_tokens,
//      the ids that would end it
//   5. temperature; 0 takes the largest logit, ties to the lowest id, and skips the rest
//   6. top_k, ties at its border to the lowest id
//   7. top_p of what top_k left: the fewest tokens, largest first, whose share reaches it
//   8. min_p: tokens at least so likely as min_p times the likeliest
//   9. a draw from what is left, by a generator keyed by (seed, choice, position): the answer
//      depends on no neighbour, no batch and no preemption
// Log-probabilities are of the model: log-softmax of the row before step 1.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tensor/view.h"

namespace bascule {

inline constexpr int kMaxTopLogprobs = 20;

struct SamplingParams {
  float temperature = 1;
  int32_t top_k = 0;  // 0: all
  float top_p = 1;
  float min_p = 0;
  float presence_penalty = 0, frequency_penalty = 0;
  float repetition_penalty = 1;
  std::vector<std::pair<int32_t, float>> logit_bias;  // (token, what is added)
  std::optional<uint64_t> seed;                       // absent: fresh for each request
  int32_t choice = 0;                                 // which of the n answers to one prompt
  bool logprobs = false;                              // of the chosen token
  int32_t top_logprobs = 0;                           // and of so many likeliest ones
};

// kInvalidArgument names the field, its value and what would do.
Status validate(const SamplingParams& params, int64_t vocab_size);

struct TokenLogprob {
  int32_t token = -1;
  float logprob = 0;
};

// One draw.
struct Sampled {
  enum class Fault : uint8_t {
    kNone,
    kNotANumber,      // a logit is NaN or +infinity: no token can be trusted
    kNothingAllowed,  // masks and filters leave no token
  };
  int32_t token = -1;
  Fault fault = Fault::kNone;
  float logprob = 0;  // if asked for
  int32_t n_top = 0;  // entries of `top`, the likeliest first
  std::array<TokenLogprob, kMaxTopLogprobs> top{};
};

// What one worker needs to sample; sized once.
struct SamplingScratch {
  explicit SamplingScratch(int64_t vocab_size)
      : weights(size_t(vocab_size)), order(size_t(vocab_size)) {}
  std::vector<float> weights;
  std::vector<int32_t> order;
};

// One request's rules and what they remember. Used by one thread at a time.
class Sampler {
 public:
  // `seed` stands in for params.seed where that is absent. Ids from n_valid_tokens on are never
  // chosen.
  Sampler(SamplingParams params, uint64_t seed, std::span<const int32_t> prompt, int64_t vocab_size,
          int64_t n_valid_tokens);

  // The token that will stand at `position` of the sequence. `masked` ids are not chosen. Changes
  // nothing here: the same call gives the same token.
  Sampled sample(View<const float, 1> logits, int64_t position, std::span<const int32_t> masked,
                 SamplingScratch& scratch) const;

  // The token became part of the answer: penalties count it.
  void accept(int32_t token);

 private:
  bool changes_logits() const;
  void adjust(std::span<float> x, std::span<const int32_t> masked) const;
  int32_t draw(std::span<float> x, int64_t position, std::span<int32_t> order) const;
  std::span<int32_t> candidates(std::span<const float> x, std::span<int32_t> order) const;
  void note(int32_t token);

  SamplingParams params_;
  uint64_t seed_;
  int64_t n_valid_tokens_;
  bool has_penalties_;
  std::vector<int32_t> n_in_answer_;  // [vocab] where there are penalties: occurrences
  std::vector<int32_t> distinct_;     // tokens of prompt or answer, each once
  std::vector<bool> is_known_;        // [vocab]: in distinct_
};

// Counter-based generator Philox4x32-10 (Salmon et al. 2011): four words of a counter and a key.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

}  // namespace bascule
