#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/reference/rows.h"

namespace bascule::reference {

void top_k(const float* scores, int64_t n, int64_t k, int32_t* out) {
  const auto value = [&](int32_t i) {
    return std::isnan(scores[i]) ? -std::numeric_limits<float>::infinity() : scores[i];
  };
  // NaN ranks below a true minus infinity.
  const auto before = [&](int32_t a, int32_t b) {
    if (value(a) != value(b)) return value(a) > value(b);
    if (std::isnan(scores[a]) != std::isnan(scores[b])) return std::isnan(scores[b]);
    return a < b;
  };
  std::vector<int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  const int64_t taken = std::min(n, k);
  std::partial_sort(order.begin(), order.begin() + taken, order.end(), before);
  std::sort(order.begin(), order.begin() + taken);
  std::copy_n(order.begin(), taken, out);
}

void select_keys(const SelectKeys& op, Stream&) {
  const int64_t k = op.selected.extent[1];
  std::vector<float> scores;
  for (int64_t t = 0; t < op.n_tokens(); ++t) {
    const int64_t n_keys = int64_t{op.places.position(t)} + 1;
    int32_t* out = &op.selected(t, 0);
    std::fill_n(out, k, -1);
    if (n_keys <= k) {
      std::iota(out, out + n_keys, 0);
      continue;
    }
    scores.assign(n_keys, 0);
    for (int64_t s = 0; s < n_keys; ++s) {
      const void* key = op.places.row(op.keys, t, s);
      double score = 0;
      for (int64_t h = 0; h < op.q.extent[1]; ++h) {
        double product = 0;
        for (int64_t d = 0; d < op.keys.width; ++d)
          product += double(op.q(t, h, d)) * load(key, op.keys.dtype, d);
        score += double(op.weight_scale * op.weights(t, h)) * (product < 0 ? 0 : product);
      }
      scores[s] = float(score);
    }
    top_k(scores.data(), n_keys, k, out);
  }
}

}  // namespace bascule::reference
