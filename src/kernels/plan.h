// The plan: for every op of a model and every band of token counts, which row runs and why. It is
// made before anything runs, and nothing is chosen later. Knows no model: a model adds its ops.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/function_ref.h"
#include "base/trace.h"
#include "kernels/registry.h"

namespace bascule {

enum class Origin {
  kDefault,    // the highest grade that accepts the op, of equals the last: newer instruction sets
               // are added after older ones. Nothing was measured
  kForced,     // --kernels fast asked for it
  kReference,  // --kernels reference asked for it, or no other row accepts the op
};
std::string_view name(Origin origin);

enum class KernelMode {
  kAuto,       // the highest grade
  kReference,  // reference rows alone
  kFast,       // the highest grade; an op with a reference row alone is listed by the plan
};

struct PlanPolicy {
  KernelMode mode = KernelMode::kAuto;
  Machine machine;
  int64_t max_batch_tokens = 512;  // bands past it are not resolved
};

// One op of the model in one band, as chosen.
struct PlannedRow {
  std::string site;   // "layers.attention.q_a"
  std::string op;     // "matmul"
  std::string shape;  // "x [n, 1024] · w [2048, 1024] BF16"
  int band = 0;
  int64_t n_tokens = 0;  // the band's largest count, at which cost is told
  double launches = 0;   // of this site in one step
  std::string kernel;    // "cpu.matmul.avx2"
  Origin origin = Origin::kDefault;
  bool batch_invariant = true;
  std::vector<std::string> refused;  // "cpu.matmul.avx512: this machine has no avx512"
  Cost cost;                         // of one launch
};

// An op of the model with its rows resolved: what the forward pass calls.
template <typename Op>
class Site {
 public:
  // Nothing to do for no tokens.
  void operator()(const Op& op, Stream& stream) const {
    if (op.n_tokens() == 0) return;
    const Kernel<Op>* kernel = kernels_[band_of(op.n_tokens())];
    BASCULE_CHECK(kernel);
    const TraceZone zone(zone_);
    kernel->launch(op, stream);
  }

 private:
  friend class Plan;
  std::array<const Kernel<Op>*, kBands> kernels_{};
  const char* zone_ = "";  // the site's name
};

class Plan {
 public:
  explicit Plan(PlanPolicy policy) : policy_(std::move(policy)) {}

  // Resolves one op; op_at(n) is its shape in a batch of n tokens. On the CPU one row serves all
  // bands of a site, so that a token's sums have one order whatever runs beside it.
  template <typename Op>
  Site<Op> add(const std::string& site, double launches, FunctionRef<Op(int64_t)> op_at,
               const Registry& rows = registry());

  const PlanPolicy& policy() const { return policy_; }
  const std::vector<PlannedRow>& rows() const { return rows_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }  // of each worker: the largest need
  int64_t shared_bytes() const { return shared_bytes_; }    // of all workers together
  int n_bands() const { return band_of(policy_.max_batch_tokens) + 1; }

 private:
  int64_t largest_of(int band) const { return std::min(kBandEnds[band], policy_.max_batch_tokens); }

  // Why this row may not serve the site, if it may not.
  template <typename Op>
  Refusal refusal(const Kernel<Op>& row, FunctionRef<Op(int64_t)> op_at) const;

  PlanPolicy policy_;
  std::vector<PlannedRow> rows_;
  int64_t scratch_bytes_ = 0, shared_bytes_ = 0;
};

// "x [n, 1024] · w [2048, 1024] BF16" and the like: the shape of an op for a person.
template <typename Op>
std::string shape_text(const Op& op);

template <typename Op>
Refusal Plan::refusal(const Kernel<Op>& row, FunctionRef<Op(int64_t)> op_at) const {
  if (policy_.mode == KernelMode::kReference && row.grade != Grade::kReference)
    return "reference rows were asked for";
  if (!row.batch_invariant) return "its result for a token depends on the others in the batch";
  for (int band = 0; band < n_bands() && row.refuses; ++band)
    if (Refusal why = row.refuses(op_at(largest_of(band)), policy_.machine)) return why;
  return {};
}

template <typename Op>
Site<Op> Plan::add(const std::string& site, double launches, FunctionRef<Op(int64_t)> op_at,
                   const Registry& rows) {
  const Kernel<Op>* chosen = nullptr;
  std::vector<std::string> refused;
  for (const Kernel<Op>& row : rows.template rows<Op>()) {
    if (const Refusal why = refusal(row, op_at)) {
      refused.push_back(row.name + ": " + *why);
    } else if (!chosen || row.grade >= chosen->grade) {
      chosen = &row;
    }
  }
  BASCULE_CHECK(chosen);  // every op has a reference row, and it accepts everything
  const Origin origin = chosen->grade == Grade::kReference  ? Origin::kReference
                        : policy_.mode == KernelMode::kFast ? Origin::kForced
                                                            : Origin::kDefault;
  Site<Op> result;
  result.zone_ = trace::name(site);
  for (int band = 0; band < n_bands(); ++band) {
    const Op op = op_at(largest_of(band));
    result.kernels_[band] = chosen;
    if (chosen->scratch_bytes) scratch_bytes_ = std::max(scratch_bytes_, chosen->scratch_bytes(op));
    if (chosen->shared_bytes) shared_bytes_ = std::max(shared_bytes_, chosen->shared_bytes(op));
    rows_.push_back({.site = site,
                     .op = std::string(Op::kName),
                     .shape = shape_text(op),
                     .band = band,
                     .n_tokens = largest_of(band),
                     .launches = launches,
                     .kernel = chosen->name,
                     .origin = origin,
                     .batch_invariant = chosen->batch_invariant,
                     .refused = refused,
                     .cost = op.cost()});
  }
  return result;
}

}  // namespace bascule
