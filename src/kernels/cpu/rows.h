// The rows of this folder. Those with Loops are made once an instruction set; the others are plain
// loops for every processor. All are batch-invariant.
#pragma once

#include "kernels/cpu/loops.h"
#include "kernels/registry.h"

namespace bascule::cpu {

void embed(const Embed& op, Stream& stream, const Loops& loops);
void rms_norm(const RmsNorm& op, Stream& stream, const Loops& loops);
void layer_norm(const LayerNorm& op, Stream& stream, const Loops& loops);
void cache_write(const CacheWrite& op, Stream& stream, const Loops& loops);
void matmul(const MatMul& op, Stream& stream, const Loops& loops);
void expert_up(const ExpertUp& op, Stream& stream, const Loops& loops);
void expert_down(const ExpertDown& op, Stream& stream, const Loops& loops);
void matmul_int8(const MatMul& op, Stream& stream, const Loops& loops);
void expert_up_int8(const ExpertUp& op, Stream& stream, const Loops& loops);
void expert_down_int8(const ExpertDown& op, Stream& stream, const Loops& loops);
void combine_slots(const CombineSlots& op, Stream& stream, const Loops& loops);
void sparse_mla(const SparseMla& op, Stream& stream, const Loops& loops);
void select_keys(const SelectKeys& op, Stream& stream, const Loops& loops);

void rope_table(const RopeTable& op, Stream& stream);
void rope(const Rope& op, Stream& stream);
void route(const Route& op, Stream& stream);
void group_slots(const GroupSlots& op, Stream& stream);

// Why no row here may run this op, if none may; shapes and types alone.
Refusal refuses_embed(const Embed& op);
Refusal refuses_rms_norm(const RmsNorm& op);
Refusal refuses_layer_norm(const LayerNorm& op);
Refusal refuses_cache_write(const CacheWrite& op);
Refusal refuses_matmul(const MatMul& op);
Refusal refuses_expert_up(const ExpertUp& op);
Refusal refuses_expert_down(const ExpertDown& op);
Refusal refuses_matmul_int8(const MatMul& op);
Refusal refuses_expert_up_int8(const ExpertUp& op);
Refusal refuses_expert_down_int8(const ExpertDown& op);
Refusal refuses_combine_slots(const CombineSlots& op);
Refusal refuses_sparse_mla(const SparseMla& op);
Refusal refuses_select_keys(const SelectKeys& op);
Refusal refuses_rope(const Rope& op);

int64_t matmul_int8_shared_bytes(const MatMul& op);
int64_t expert_up_int8_shared_bytes(const ExpertUp& op);
int64_t expert_down_int8_shared_bytes(const ExpertDown& op);
int64_t matmul_shared_bytes(const MatMul& op);
int64_t expert_up_shared_bytes(const ExpertUp& op);
int64_t expert_down_shared_bytes(const ExpertDown& op);
int64_t expert_up_scratch_bytes(const ExpertUp& op);
int64_t expert_down_scratch_bytes(const ExpertDown& op);
int64_t sparse_mla_scratch_bytes(const SparseMla& op);
int64_t select_keys_scratch_bytes(const SelectKeys& op);
int64_t route_scratch_bytes(const Route& op);

}  // namespace bascule::cpu
