// The activations of one rank's step: every intermediate has one named buffer, laid out once.
// docs/model.md has the letters.
#pragma once

#include "base/arena.h"
#include "model/config.h"
#include "model/model.h"
#include "model/placement.h"

namespace bascule {

struct Buffers {
  // Residual stream and what a block reads.
  View<float, 2> h;  // [n_tokens, d_model]
  Tensor<2> x;       // [n_tokens, d_model], normed, in the activation type

  // Attention. Heads are this rank's; o has the gathered heads of all.
  View<float, 2> cos, sin;       // [n_tokens, d_rope / 2]
  View<float, 2> q_latent_raw;   // [n_tokens, q_rank]
  Tensor<2> q_latent;            // [n_tokens, q_rank], normed, in the activation type
  View<float, 2> q;              // [n_tokens, n_heads * d_qk]
  View<float, 2> kv;             // [n_tokens, kv_rank + d_rope]: the row that is cached
  View<float, 2> index_q;        // [n_tokens, n_index_heads * d_index]
  View<float, 2> index_weights;  // [n_tokens, n_index_heads]
  View<float, 2> index_k;        // [n_tokens, d_index]
  View<int32_t, 2> selected;     // [n_tokens, index_topk]; kept for the layers that share it
  Tensor<2> o;                   // [n_tokens, n_heads * d_v], in the activation type

  // Dense MLP.
  Tensor<2> dense_act;           // [n_tokens, d_dense], in the activation type
  View<int32_t, 1> one_group;    // [2]: 0, n_tokens
  View<int32_t, 1> every_token;  // [n_tokens]: 0, 1, 2, …

  // Mixture of experts. `all` is every data-parallel group's tokens where experts are spread over
  // ranks, else this rank's own.
  View<float, 2> router_logits;  // [n_tokens, n_experts]
  View<float, 2> slot_weights;   // [n_tokens, slots_per_token]
  View<int32_t, 2> experts;      // [n_all, slots_per_token]
  Tensor<2> x_all;               // [n_all, d_model]; x itself where no tokens come from elsewhere
  View<int32_t, 1> group_begin;  // [n_experts + n_shared + 1]
  View<int32_t, 1> slots;        // [n_all * slots_per_token]
  View<int32_t, 1> slot_owner;   // [n_all * slots_per_token]
  Tensor<2> act;                 // [n_all * slots_per_token, d_expert], in the activation type
  View<float, 2> slot_y;         // [n_all * slots_per_token, d_model]

  // Output.
  View<float, 2> last_h;  // [n_logit_rows, d_model]
  Tensor<2> last_x;       // [n_logit_rows, d_model], normed, in the activation type
  View<float, 2> logits;  // [n_logit_rows, vocab]
  View<float, 2> final;   // [n_tokens, d_model]: the state after the final norm, for a tap

  static Buffers lay_out(Arena& arena, const ModelConfig& config, const Placement& placement,
                         const ModelOptions& options);
};

// Columns of a token in the expert tables: routed experts, then shared ones.
inline int64_t slots_per_token(const ModelConfig& config) {
  return config.n_active_experts + config.n_shared_experts;
}

}  // namespace bascule
