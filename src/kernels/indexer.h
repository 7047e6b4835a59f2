// The lightning indexer (DeepSeek-V3.2 2025): which keys a token attends to.
#pragma once

#include "kernels/kernel.h"
#include "kernels/pages.h"

namespace bascule {

// score(s) = Σ_h weight_scale · weights[h] · max(0, q_h · k(s)) for s up to the token's position;
// the topk largest, ascending by position, then -1. Ties go to the lowest position, -0 equals +0,
// NaN, which max(0, NaN) stays, is below everything. With no more than topk keys all are selected
// and no score is computed. Memory does not grow with n_tokens: a worker holds the scores of one
// token at a time.
struct SelectKeys {
  static constexpr std::string_view kName = "select_keys";
  View<const float, 3> q;        // [n_tokens, n_index_heads, d_index], rotated
  View<const float, 2> weights;  // [n_tokens, n_index_heads]
  float weight_scale = 1;
  PagedCache keys;  // rows [d_index]
  TokenPlaces places;
  View<int32_t, 2> selected;  // [n_tokens, topk]
  int64_t max_context = 0;    // positions stay below it

  int64_t n_tokens() const { return q.extent[0]; }
  Cost cost() const;  // as if every token stood at max_context
};

}  // namespace bascule
