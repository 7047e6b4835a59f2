// The rows of this folder. Those with Loops are made once an instruction set; the others are plain
// loops for every processor. All are batch-invariant.
#pragma once

#include "kernels/cpu/loops.h"
#include "kernels/registry.h"

namespace bascule::cpu {

void matmul(const MatMul& op, Stream& stream, const Loops& loops);
void expert_up(const ExpertUp& op, Stream& stream, const Loops& loops);
void expert_down(const ExpertDown& op, Stream& stream, const Loops& loops);
void combine_slots(const CombineSlots& op, Stream& stream, const Loops& loops);

// Why no row here may run this op, if none may; shapes and types alone.
Refusal refuses_matmul(const MatMul& op);
Refusal refuses_expert_up(const ExpertUp& op);
Refusal refuses_expert_down(const ExpertDown& op);
Refusal refuses_combine_slots(const CombineSlots& op);

int64_t expert_up_scratch_bytes(const ExpertUp& op);
int64_t expert_down_scratch_bytes(const ExpertDown& op);

}  // namespace bascule::cpu
