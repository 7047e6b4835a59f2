#include "kernels/reference/rows.h"

namespace bascule::reference {

void add_kernels(Registry& r) {
  r.rows<Embed>().push_back({.name = "cpu.embed.reference", .launch = embed});
  r.rows<RmsNorm>().push_back({.name = "cpu.rms_norm.reference", .launch = rms_norm});
  r.rows<LayerNorm>().push_back({.name = "cpu.layer_norm.reference", .launch = layer_norm});
  r.rows<RopeTable>().push_back({.name = "cpu.rope_table.reference", .launch = rope_table});
  r.rows<Rope>().push_back({.name = "cpu.rope.reference", .launch = rope});
  r.rows<MatMul>().push_back({.name = "cpu.matmul.reference", .launch = matmul});
  r.rows<Route>().push_back({.name = "cpu.route.reference", .launch = route});
  r.rows<GroupSlots>().push_back({.name = "cpu.group_slots.reference", .launch = group_slots});
  r.rows<ExpertUp>().push_back({.name = "cpu.expert_up.reference", .launch = expert_up});
  r.rows<ExpertDown>().push_back({.name = "cpu.expert_down.reference", .launch = expert_down});
  r.rows<CombineSlots>().push_back(
      {.name = "cpu.combine_slots.reference", .launch = combine_slots});
  r.rows<SparseMla>().push_back(
      {.name = "cpu.sparse_mla.reference", .launch = sparse_mla_absorbed});
  r.rows<SparseMla>().push_back(
      {.name = "cpu.sparse_mla.reference_expanded", .launch = sparse_mla_expanded});
  r.rows<SelectKeys>().push_back({.name = "cpu.select_keys.reference", .launch = select_keys});
  r.rows<CacheWrite>().push_back({.name = "cpu.cache_write.reference", .launch = cache_write});
}

}  // namespace bascule::reference
