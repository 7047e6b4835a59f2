// The choice of experts, and the slots of each. Scores are in double, as in the reference: a choice
// between near equals must not depend on the row, and 256 exponentials are microseconds.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "kernels/cpu/rows.h"

namespace bascule::cpu {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

void score(const Route& op, int64_t t, std::span<double> s) {
  if (op.sigmoid) {
    for (size_t e = 0; e < s.size(); ++e) s[e] = 1 / (1 + std::exp(-double(op.logits(t, e))));
    return;
  }
  double largest = kNever, sum = 0;
  for (size_t e = 0; e < s.size(); ++e) largest = std::max(largest, double(op.logits(t, e)));
  for (size_t e = 0; e < s.size(); ++e) sum += s[e] = std::exp(double(op.logits(t, e)) - largest);
  for (double& v : s) v /= sum;
}

constexpr double kTaken = std::numeric_limits<double>::quiet_NaN();

// Marks the largest that isn't taken, the lowest one of equals, and says which it was.
int64_t take_best(std::span<double> values) {
  int64_t best = -1;
  for (int64_t i = 0; i < int64_t(values.size()); ++i)
    if (!std::isnan(values[i]) && (best < 0 || values[i] > values[best])) best = i;
  values[best] = kTaken;
  return best;
}

// A group's rank: the sum of its two best.
double two_best(std::span<const double> group) {
  double first = kNever, second = kNever;
  for (const double v : group) {
    second = std::max(second, std::min(first, v));
    first = std::max(first, v);
  }
  return group.size() > 1 ? first + second : first;
}

// Leaves the experts of the best groups in the choice. rank: [n_groups].
void keep_best_groups(const Route& op, std::span<double> choice, std::span<double> rank) {
  const size_t size = choice.size() / rank.size();
  for (size_t g = 0; g < rank.size(); ++g) rank[g] = two_best(choice.subspan(g * size, size));
  for (int64_t kept = 0; kept < op.n_active_groups; ++kept) take_best(rank);
  for (size_t g = 0; g < rank.size(); ++g)
    if (!std::isnan(rank[g])) std::ranges::fill(choice.subspan(g * size, size), kNever);
}

// scratch: a score and a choice of each expert, a rank of each group.
void route_token(const Route& op, int64_t t, double* scratch) {
  const int64_t n_experts = op.logits.extent[1], slots_per_token = op.experts.extent[1];
  const std::span s(scratch, size_t(n_experts)), choice(scratch + n_experts, size_t(n_experts));
  score(op, t, s);
  for (int64_t e = 0; e < n_experts; ++e) {
    const float biased = float(s[e]) + (op.bias ? op.bias(e) : 0.0f);
    choice[e] = std::isnan(biased) ? kNever : biased;
  }
  if (op.n_groups > 1)
    keep_best_groups(op, choice, std::span(scratch + 2 * n_experts, size_t(op.n_groups)));
  double sum = 0;
  for (int64_t j = 0; j < op.n_active; ++j) {
    op.experts(t, j) = int32_t(take_best(choice));
    sum += s[op.experts(t, j)];
  }
  for (int64_t j = 0; j < op.n_active; ++j) {
    const double weight = s[op.experts(t, j)];
    op.weights(t, j) = float((op.normalise ? weight / (sum + 1e-20) : weight) * op.scale);
  }
  for (int64_t j = op.n_active; j < slots_per_token; ++j) {
    op.experts(t, j) = int32_t(n_experts + j - op.n_active);
    op.weights(t, j) = 1;
  }
}

}  // namespace

int64_t route_scratch_bytes(const Route& op) {
  return (2 * op.logits.extent[1] + op.n_groups) * int64_t(sizeof(double));
}

void route(const Route& op, Stream& stream) {
  Threads& threads = *stream.threads;
  BASCULE_CHECK_LE(route_scratch_bytes(op), int64_t(threads.scratch(0).size()));
  threads.ranges(op.n_tokens(), 16, [&](int64_t begin, int64_t end, int worker) {
    auto* scratch = reinterpret_cast<double*>(threads.scratch(worker).data());
    for (int64_t t = begin; t < end; ++t) route_token(op, t, scratch);
  });
}

// By counting: how many slots each expert has, where its slots begin, then each slot to its place.
void group_slots(const GroupSlots& op, Stream&) {
  const int64_t n_experts = op.begin.extent[0] - 1, slots_per_token = op.experts.extent[1];
  const auto for_each_slot = [&](auto f) {
    for (int64_t t = 0, slot = 0; t < op.n_tokens(); ++t) {
      for (int64_t j = 0; j < slots_per_token; ++j, ++slot) {
        const int64_t e = op.experts(t, j) - op.first_expert;
        if (0 <= e && e < n_experts) f(e, int32_t(slot));
      }
    }
  };
  for (int64_t e = 0; e <= n_experts; ++e) op.begin(e) = 0;
  for_each_slot([&](int64_t e, int32_t) { ++op.begin(e + 1); });
  for (int64_t e = 0; e < n_experts; ++e) op.begin(e + 1) += op.begin(e);
  for_each_slot([&](int64_t e, int32_t slot) { op.slots(op.begin(e)++) = slot; });
  for (int64_t e = n_experts; e > 0; --e)
    op.begin(e) = op.begin(e - 1);  // each had moved to its end
  op.begin(0) = 0;
}

}  // namespace bascule::cpu
