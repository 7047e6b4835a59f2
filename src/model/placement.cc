#include "model/placement.h"

#include <fmt/format.h>

#include <algorithm>

namespace bascule {

Range part_of(int64_t n, int parts, int i) { return {n * i / parts, n * (i + 1) / parts}; }

int Layout::world() const { return std::max(tp * dp, ep); }

Status validate(const Layout& layout, const ModelConfig& config) {
  const auto [tp, ep, dp] = layout;
  if (tp < 1 || ep < 1 || dp < 1)
    return invalid_argument(fmt::format("--tp {} --ep {} --dp {}: each is at least 1", tp, ep, dp));
  const int64_t most = std::min({config.n_heads, config.d_model, config.d_expert, config.d_dense});
  if (tp > most)
    return invalid_argument(
        fmt::format("--tp {}: this model can be cut in at most {} ({} attention heads)", tp, most,
                    config.n_heads));
  if (ep > config.n_experts)
    return invalid_argument(
        fmt::format("--ep {}: this model has {} experts a layer", ep, config.n_experts));
  if (ep > 1 && (ep < tp * dp || ep % (tp * dp) != 0))
    return invalid_argument(fmt::format(
        "--ep {} with --tp {} --dp {}: experts spread over all ranks, so --ep must be 1 or a "
        "multiple of {}",
        ep, tp, dp, tp * dp));
  return {};
}

int Placement::expert_owner(int64_t expert, int64_t n) const {
  int owner = int(expert * layout_.ep / n);  // right or one too low: parts round down
  while (part_of(n, layout_.ep, owner).end <= expert) ++owner;
  return owner;
}

}  // namespace bascule
