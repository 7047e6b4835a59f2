// The tables of rows, one an op.
#pragma once

#include <tuple>
#include <vector>

#include "kernels/attention.h"
#include "kernels/cache_write.h"
#include "kernels/gemm.h"
#include "kernels/indexer.h"
#include "kernels/kernel.h"
#include "kernels/moe.h"
#include "kernels/pointwise.h"

namespace bascule {

template <typename... Ops>
class Tables {
 public:
  template <typename Op>
  std::vector<Kernel<Op>>& rows() {
    return std::get<std::vector<Kernel<Op>>>(tables_);
  }
  template <typename Op>
  const std::vector<Kernel<Op>>& rows() const {
    return std::get<std::vector<Kernel<Op>>>(tables_);
  }

 private:
  std::tuple<std::vector<Kernel<Ops>>...> tables_;
};

// Every op there is: a new one is a line here.
using Registry = Tables<Embed, RmsNorm, LayerNorm, RopeTable, Rope, MatMul, Route, GroupSlots,
                        ExpertUp, ExpertDown, CombineSlots, SparseMla, SelectKeys, CacheWrite>;

namespace reference {
void add_kernels(Registry& registry);
}
namespace cpu {
void add_kernels(Registry& registry);
}

// All rows of this build, reference rows first. Built once; lives as long as the process.
const Registry& registry();

}  // namespace bascule
