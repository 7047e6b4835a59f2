// The CPU rows of every instruction set this build has.
#include "kernels/cpu/rows.h"

namespace bascule::cpu {
namespace {

template <typename Op>
std::string row_name(Isa isa, const char* way = "") {
  return "cpu." + std::string(Op::kName) + "." + way + std::string(name(isa));
}

template <typename Op>
Op op_of(void (*run)(const Op&, Stream&, const Loops&));  // its type alone

// Adds the row of one op with the loops of one instruction set. `why_not` looks at shapes and
// types.
template <const Loops& loops, Isa isa, auto run, auto why_not, auto scratch_bytes = nullptr,
          auto shared_bytes = nullptr>
void add(Registry& r, const char* way = "") {
  using Op = decltype(op_of(run));
  r.rows<Op>().push_back({
      .name = row_name<Op>(isa, way),
      .grade = isa == Isa::kBaseline ? Grade::kPortable : Grade::kOptimised,
      .refuses = [](const Op& op, const Machine& machine) -> Refusal {
        if (!machine.has(isa)) return "this machine has no " + std::string(name(isa));
        return why_not(op);
      },
      .scratch_bytes = scratch_bytes,
      .shared_bytes = shared_bytes,
      .launch = [](const Op& op, Stream& stream) { run(op, stream, loops); },
  });
}

// The rows that multiply integers.
template <const Loops& loops, Isa isa>
void add_int8(Registry& r) {
  add<loops, isa, matmul_int8, refuses_matmul_int8, nullptr, matmul_int8_shared_bytes>(r, "int8.");
  add<loops, isa, expert_up_int8, refuses_expert_up_int8, expert_up_scratch_bytes,
      expert_up_int8_shared_bytes>(r, "int8.");
  add<loops, isa, expert_down_int8, refuses_expert_down_int8, expert_down_scratch_bytes,
      expert_down_int8_shared_bytes>(r, "int8.");
}

template <const Loops& loops, Isa isa>
void add_isa(Registry& r) {
  add_int8<loops, isa>(r);
  add<loops, isa, embed, refuses_embed>(r);
  add<loops, isa, rms_norm, refuses_rms_norm>(r);
  add<loops, isa, layer_norm, refuses_layer_norm>(r);
  add<loops, isa, cache_write, refuses_cache_write>(r);
  add<loops, isa, matmul, refuses_matmul, nullptr, matmul_shared_bytes>(r);
  add<loops, isa, expert_up, refuses_expert_up, expert_up_scratch_bytes, expert_up_shared_bytes>(r);
  add<loops, isa, expert_down, refuses_expert_down, expert_down_scratch_bytes,
      expert_down_shared_bytes>(r);
  add<loops, isa, combine_slots, refuses_combine_slots>(r);
  add<loops, isa, sparse_mla, refuses_sparse_mla, sparse_mla_scratch_bytes>(r);
  add<loops, isa, select_keys, refuses_select_keys, select_keys_scratch_bytes>(r);
}

// Adds a row of plain loops, the same for every processor.
template <typename Op>
void add_plain(Registry& r, void (*launch)(const Op&, Stream&),
               Refusal (*refuses)(const Op&, const Machine&) = nullptr,
               int64_t (*scratch_bytes)(const Op&) = nullptr) {
  r.rows<Op>().push_back({.name = row_name<Op>(Isa::kBaseline),
                          .grade = Grade::kPortable,
                          .refuses = refuses,
                          .scratch_bytes = scratch_bytes,
                          .launch = launch});
}

#if defined(__x86_64__)
const Loops kAvx512VnniLoops = [] {
  Loops loops = kAvx512Loops;
  loops.dot_tiles = dot_tiles_avx512vnni;
  return loops;
}();
#endif

}  // namespace

void add_kernels(Registry& r) {
  add_plain<RopeTable>(r, rope_table);
  add_plain<Rope>(r, rope, [](const Rope& op, const Machine&) { return refuses_rope(op); });
  add_plain<Route>(r, route, nullptr, route_scratch_bytes);
  add_plain<GroupSlots>(r, group_slots);
  add_isa<kPortableLoops, Isa::kBaseline>(r);
#if defined(__x86_64__)
  add_isa<kAvx2Loops, Isa::kAvx2>(r);
  add_isa<kAvx512Loops, Isa::kAvx512>(r);
  add_int8<kAvx512VnniLoops, Isa::kAvx512Vnni>(r);
#elif defined(__aarch64__)
  add_isa<kNeonLoops, Isa::kNeon>(r);
#endif
}

}  // namespace bascule::cpu
