// Mixture of experts, in the order of a layer: route, group, up, down, combine. A *slot* is one
// token at one of its experts: slot = token · slots_per_token + j. A dense MLP is the case of one
// expert that every token has; shared experts are further ids, past the routed ones.
#pragma once

#include <span>

#include "kernels/kernel.h"
#include "tensor/quant/rounding.h"
#include "tensor/weight_matrix.h"

namespace bascule {

// Chooses experts (DeepSeek-V3 2024, auxiliary-loss-free balance): s = scoring(logits); the
// n_active largest s + bias, ties to the lowest id, among the groups that are allowed; weights from
// s without the bias, normalised to sum 1 if asked, times scale. With groups, a group ranks by the
// sum of its two best s + bias. Columns n_active … slots_per_token - 1 are shared experts: ids
// n_experts, n_experts + 1, … with weight 1.
struct Route {
  static constexpr std::string_view kName = "route";
  View<const float, 2> logits;  // [n_tokens, n_experts]
  View<const float, 1> bias;    // [n_experts]; null: none
  int64_t n_active = 0, n_groups = 1, n_active_groups = 1;
  bool sigmoid = true;  // else softmax
  bool normalise = true;
  float scale = 1;
  View<int32_t, 2> experts;  // [n_tokens, slots_per_token]; the best first
  View<float, 2> weights;    // [n_tokens, slots_per_token]

  int64_t n_tokens() const { return logits.extent[0]; }
  Cost cost() const;
};

// The slots of each expert in [first_expert, first_expert + n_experts), ascending. Slots of other
// experts are left out: another rank has them.
struct GroupSlots {
  static constexpr std::string_view kName = "group_slots";
  View<const int32_t, 2> experts;  // [n_tokens, slots_per_token]
  int64_t first_expert = 0;
  View<int32_t, 1>
      begin;  // [n_experts + 1]: expert e has slots[begin[e]] … slots[begin[e + 1] - 1]
  View<int32_t, 1> slots;  // [n_tokens * slots_per_token]

  int64_t n_tokens() const { return experts.extent[0]; }
  Cost cost() const;
};

// The three products of an expert, or the rows of them that this rank computes.
struct ExpertWeights {
  WeightMatrix gate, up;  // [d_ff, d_model]
  WeightMatrix down;      // [d_model, d_ff]
};

// act[slot] = silu(Wgate x) ⊙ (Wup x) (Shazeer 2020) for every grouped slot, x of the slot's token,
// rounded.
struct ExpertUp {
  static constexpr std::string_view kName = "expert_up";
  Tensor<2> x;                             // [n_tokens, d_model] F32 or BF16
  std::span<const ExpertWeights> experts;  // [n_experts]
  View<const int32_t, 1> begin, slots;     // of GroupSlots
  int64_t slots_per_token = 1;
  Tensor<2> act;  // [n_tokens * slots_per_token, d_ff] F32 or BF16
  Rounding rounding = Rounding::kNone;

  int64_t n_tokens() const { return x.extent[0]; }
  Cost cost() const;
};

// y[slot] = Wdown act[slot] for every grouped slot, act rounded.
struct ExpertDown {
  static constexpr std::string_view kName = "expert_down";
  Tensor<2> act;  // [n_tokens * slots_per_token, d_ff] F32 or BF16
  std::span<const ExpertWeights> experts;
  View<const int32_t, 1> begin, slots;
  int64_t slots_per_token = 1;
  View<float, 2> y;  // [n_tokens * slots_per_token, d_model]
  Rounding rounding = Rounding::kNone;

  int64_t n_tokens() const { return y.extent[0] / slots_per_token; }
  Cost cost() const;
};

// h[t] += Σ_j weights[t, j] · y[t · slots_per_token + j], summed with j ascending, then added.
struct CombineSlots {
  static constexpr std::string_view kName = "combine_slots";
  View<const float, 2> y;        // [n_tokens * slots_per_token, n_columns]
  View<const float, 2> weights;  // [n_tokens, slots_per_token]
  View<float, 2> h;              // [n_tokens, n_columns]

  int64_t n_tokens() const { return h.extent[0]; }
  Cost cost() const;
};

}  // namespace bascule
