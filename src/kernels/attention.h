// Multi-head latent attention (DeepSeek-V2 2024) over the keys that the indexer selected.
#pragma once

#include "kernels/kernel.h"
#include "kernels/pages.h"
#include "tensor/weight_matrix.h"

namespace bascule {

// For each token and head, over the selected positions s, with c(s) the cached latent and r(s) the
// cached rotated key:
//   p = softmax_s(scale · (q_nope · K_h c(s) + q_rope · r(s)))        o_h = V_h Σ_s p(s) c(s)
// K_h [d_nope, kv_rank] and V_h [d_v, kv_rank] are rows of kv_b. The absorbed form (K_hᵀ multiplied
// into q first) and the expanded one (K_h c(s) of each key) are two rows of this op.
struct SparseMla {
  static constexpr std::string_view kName = "sparse_mla";
  View<const float, 3> q;  // [n_tokens, n_heads, d_nope + d_rope]; the last d_rope rotated
  WeightMatrix kv_b;       // [n_heads * (d_nope + d_v), kv_rank]; a head's rows: keys, then values
  PagedCache cache;        // rows [kv_rank + d_rope]: latent, then rotated key
  TokenPlaces places;
  View<const int32_t, 2> selected;  // [n_tokens, topk]: positions ascending, then -1
  int64_t d_nope = 0, d_rope = 0, d_v = 0;
  float scale = 0;
  Tensor<2> o;  // [n_tokens, n_heads * d_v] F32 or BF16

  int64_t n_tokens() const { return q.extent[0]; }
  int64_t n_heads() const { return q.extent[1]; }
  int64_t kv_rank() const { return kv_b.n_in; }
  Cost cost() const;  // as if every token had topk keys
};

}  // namespace bascule
