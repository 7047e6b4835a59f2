#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/reference/dot.h"
#include "kernels/reference/rows.h"

namespace bascule::reference {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

std::vector<double> scores_of(const Route& op, int64_t t) {
  const int64_t n = op.logits.extent[1];
  std::vector<double> s(n);
  if (op.sigmoid) {
    for (int64_t e = 0; e < n; ++e) s[e] = 1 / (1 + std::exp(-double(op.logits(t, e))));
    return s;
  }
  double largest = kNever, sum = 0;
  for (int64_t e = 0; e < n; ++e) largest = std::max(largest, double(op.logits(t, e)));
  for (int64_t e = 0; e < n; ++e) sum += s[e] = std::exp(double(op.logits(t, e)) - largest);
  for (double& v : s) v /= sum;
  return s;
}

// The k best of `values`, best first, ties to the lowest index.
std::vector<int64_t> best(const std::vector<double>& values, int64_t k) {
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return values[a] > values[b]; });
  order.resize(k);
  return order;
}

// Takes the experts of all but the best groups out of the choice.
void keep_best_groups(const Route& op, std::vector<double>& choice) {
  const int64_t size = int64_t(choice.size()) / op.n_groups;
  std::vector<double> rank(op.n_groups);
  for (int64_t g = 0; g < op.n_groups; ++g) {
    const std::vector<double> group(choice.begin() + g * size, choice.begin() + (g + 1) * size);
    for (const int64_t e : best(group, std::min<int64_t>(2, size))) rank[g] += group[e];
  }
  const std::vector<int64_t> kept = best(rank, op.n_active_groups);
  for (int64_t g = 0; g < op.n_groups; ++g)
    if (std::ranges::find(kept, g) == kept.end())
      std::fill_n(choice.begin() + g * size, size, kNever);
}

}  // namespace

void route(const Route& op, Stream&) {
  const int64_t n_experts = op.logits.extent[1], slots_per_token = op.experts.extent[1];
  for (int64_t t = 0; t < op.n_tokens(); ++t) {
    const std::vector<double> score = scores_of(op, t);
    // Chosen in float, as the family is trained: score and bias are floats, and so is their sum.
    std::vector<double> choice(n_experts);
    for (int64_t e = 0; e < n_experts; ++e) {
      choice[e] = float(score[e]) + (op.bias ? op.bias(e) : 0.0f);
      if (std::isnan(choice[e])) choice[e] = kNever;
    }
    if (op.n_groups > 1) keep_best_groups(op, choice);
    const std::vector<int64_t> chosen = best(choice, op.n_active);
    double sum = 0;
    for (const int64_t e : chosen) sum += score[e];
    for (int64_t j = 0; j < op.n_active; ++j) {
      const double share = op.normalise ? score[chosen[j]] / (sum + 1e-20) : score[chosen[j]];
      op.experts(t, j) = int32_t(chosen[j]);
      op.weights(t, j) = float(share * op.scale);
    }
    for (int64_t j = op.n_active; j < slots_per_token; ++j) {
      op.experts(t, j) = int32_t(n_experts + j - op.n_active);
      op.weights(t, j) = 1;
    }
  }
}

void group_slots(const GroupSlots& op, Stream&) {
  const int64_t slots_per_token = op.experts.extent[1];
  int32_t n = 0;
  for (int64_t e = 0; e + 1 < op.begin.extent[0]; ++e) {
    op.begin(e) = n;
    for (int64_t slot = 0; slot < op.experts.size(); ++slot)
      if (op.experts(slot / slots_per_token, slot % slots_per_token) == op.first_expert + e)
        op.slots(n++) = int32_t(slot);
  }
  op.begin(op.begin.extent[0] - 1) = n;
}

void expert_up(const ExpertUp& op, Stream&) {
  const RoundedRows x(op.x, op.rounding);
  DecodedRow gate_row(op.x.extent[1]), up_row(op.x.extent[1]);
  for (size_t e = 0; e < op.experts.size(); ++e) {
    if (op.begin(e) == op.begin(e + 1)) continue;
    for (int64_t c = 0; c < op.act.extent[1]; ++c) {
      const std::vector<float>& w_gate = gate_row.of(op.experts[e].gate, c);
      const std::vector<float>& w_up = up_row.of(op.experts[e].up, c);
      for (int32_t i = op.begin(e); i < op.begin(e + 1); ++i) {
        const int64_t slot = op.slots(i), token = slot / op.slots_per_token;
        const double gate = dot(x[token], w_gate), up = dot(x[token], w_up);
        store(op.act.row(slot), op.act.dtype, c, float(gate / (1 + std::exp(-gate)) * up));
      }
    }
  }
}

void expert_down(const ExpertDown& op, Stream&) {
  const RoundedRows act(op.act, op.rounding);
  DecodedRow row(op.act.extent[1]);
  for (size_t e = 0; e < op.experts.size(); ++e) {
    if (op.begin(e) == op.begin(e + 1)) continue;
    for (int64_t c = 0; c < op.y.extent[1]; ++c) {
      const std::vector<float>& w = row.of(op.experts[e].down, c);
      for (int32_t i = op.begin(e); i < op.begin(e + 1); ++i)
        op.y(op.slots(i), c) = float(dot(act[op.slots(i)], w));
    }
  }
}

void combine_slots(const CombineSlots& op, Stream&) {
  const int64_t slots_per_token = op.weights.extent[1];
  for (int64_t t = 0; t < op.n_tokens(); ++t) {
    for (int64_t c = 0; c < op.h.extent[1]; ++c) {
      double sum = 0;
      for (int64_t j = 0; j < slots_per_token; ++j)
        sum += double(op.weights(t, j)) * double(op.y(t * slots_per_token + j, c));
      op.h(t, c) += float(sum);
    }
  }
}

}  // namespace bascule::reference
