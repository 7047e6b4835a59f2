// The reference rows: plain loops, one function an op. They are the definition of right: no
// blocking, no intrinsics, sums in double. Fast rows are held against these.
#pragma once

#include "kernels/registry.h"

namespace bascule::reference {

void embed(const Embed& op, Stream&);
void rms_norm(const RmsNorm& op, Stream&);
void layer_norm(const LayerNorm& op, Stream&);
void rope_table(const RopeTable& op, Stream&);
void rope(const Rope& op, Stream&);
void matmul(const MatMul& op, Stream&);
void route(const Route& op, Stream&);
void group_slots(const GroupSlots& op, Stream&);
void expert_up(const ExpertUp& op, Stream&);
void expert_down(const ExpertDown& op, Stream&);
void combine_slots(const CombineSlots& op, Stream&);
void sparse_mla_absorbed(const SparseMla& op, Stream&);
void sparse_mla_expanded(const SparseMla& op, Stream&);
void select_keys(const SelectKeys& op, Stream&);
void cache_write(const CacheWrite& op, Stream&);

// The k largest of scores[0 … n), as ascending indices: ties to the lowest index, -0 equal to +0,
// NaN below everything. out holds min(n, k) indices.
void top_k(const float* scores, int64_t n, int64_t k, int32_t* out);

}  // namespace bascule::reference
