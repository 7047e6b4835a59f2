// How ranks share a model, and which part of each tensor and which experts a rank holds. Everything
// is cut by output rows: a rank computes whole sums, results are gathered (device/comm.h).
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "model/config.h"

namespace bascule {

struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// Part i of n things cut in `parts`, sizes differing by one at most.
Range part_of(int64_t n, int parts, int i);

struct Layout {
  int tp = 1;  // ranks that share each attention and each MLP
  int ep = 1;  // ranks that share the routed experts, whole experts each: 1 or all ranks
  int dp = 1;  // groups of ranks with requests and caches of their own

  // max(tp · dp, ep). With ep > tp · dp = 1 each rank computes the same attention.
  int world() const;
};

// kInvalidArgument for a layout that this model cannot be cut into; the message says what would do.
Status validate(const Layout& layout, const ModelConfig& config);

class Placement {
 public:
  Placement() = default;
  Placement(Layout layout, int rank) : layout_(layout), rank_(rank) {}

  const Layout& layout() const { return layout_; }
  int rank() const { return rank_; }
  int tp_rank() const { return rank_ % layout_.tp; }
  int tp_group() const { return rank_ / layout_.tp; }    // ranks with the same one share a tp Comm
  int group() const { return tp_group() % layout_.dp; }  // whose requests it works on
  bool speaks_for_group() const { return rank_ == group() * layout_.tp; }
  bool spreads_experts() const { return layout_.ep > 1; }

  // This rank's part of n heads, rows or columns under tensor parallelism.
  Range tp_part(int64_t n) const { return part_of(n, layout_.tp, tp_rank()); }

  // This rank's routed experts, of n.
  Range experts(int64_t n) const { return part_of(n, layout_.ep, rank_ % layout_.ep); }

  // Which rank holds an expert when experts are spread.
  int expert_owner(int64_t expert, int64_t n) const;

 private:
  Layout layout_;
  int rank_ = 0;
};

}  // namespace bascule
