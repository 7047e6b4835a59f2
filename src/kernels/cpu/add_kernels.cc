// The CPU rows of every instruction set this build has.
#include "kernels/cpu/rows.h"

namespace bascule::cpu {
namespace {

// One row: `run` with the loops of one instruction set. `why_not` looks at shapes and types.
template <const Loops& loops, Isa isa, typename Op, void (*run)(const Op&, Stream&, const Loops&),
          Refusal (*why_not)(const Op&)>
Kernel<Op> row(int64_t (*scratch_bytes)(const Op&) = nullptr) {
  return {.name = "cpu." + std::string(Op::kName) + "." + std::string(name(isa)),
          .grade = isa == Isa::kBaseline ? Grade::kPortable : Grade::kOptimised,
          .refuses = [](const Op& op, const Machine& machine) -> Refusal {
            if (!machine.has(isa)) return "this machine has no " + std::string(name(isa));
            return why_not(op);
          },
          .scratch_bytes = scratch_bytes,
          .launch = [](const Op& op, Stream& stream) { run(op, stream, loops); }};
}

template <const Loops& loops, Isa isa>
void add_isa(Registry& r) {
  r.rows<MatMul>().push_back(row<loops, isa, MatMul, matmul, refuses_matmul>());
  r.rows<ExpertUp>().push_back(
      row<loops, isa, ExpertUp, expert_up, refuses_expert_up>(expert_up_scratch_bytes));
  r.rows<ExpertDown>().push_back(
      row<loops, isa, ExpertDown, expert_down, refuses_expert_down>(expert_down_scratch_bytes));
  r.rows<CombineSlots>().push_back(
      row<loops, isa, CombineSlots, combine_slots, refuses_combine_slots>());
}

}  // namespace

void add_kernels(Registry& r) {
  add_isa<kPortableLoops, Isa::kBaseline>(r);
#if defined(__x86_64__)
  add_isa<kAvx2Loops, Isa::kAvx2>(r);
#endif
}

}  // namespace bascule::cpu
