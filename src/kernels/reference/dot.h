// The sum that every product here is made of.
#pragma once

#include <vector>

#include "tensor/weight_matrix.h"

namespace bascule::reference {

// A row of weights, decoded once for all tokens that it meets.
class DecodedRow {
 public:
  explicit DecodedRow(int64_t n_columns) : values_(size_t(n_columns)) {}

  const std::vector<float>& of(const WeightMatrix& w, int64_t row) {
    w.decode_row(row, values_.data());
    return values_;
  }

 private:
  std::vector<float> values_;
};

// Calls f with `data` as a pointer to its true element type.
template <typename F>
auto with_type(const void* data, Dtype dtype, F f) {
  switch (dtype) {
    case Dtype::kF32:
      return f(static_cast<const float*>(data));
    case Dtype::kBf16:
      return f(static_cast<const bf16*>(data));
    case Dtype::kF16:
      return f(static_cast<const f16*>(data));
    default:
      check_failed(__FILE__, __LINE__, "a plain float type", std::string(name(dtype)));
  }
}

// Row i of x · w. Four partial sums, since one would wait for each addition in turn and whole
// models run on these rows.
inline double dot(const Tensor<2>& x, int64_t i, const std::vector<float>& w) {
  return with_type(x.row(i), x.dtype, [&](const auto* values) {
    double sums[4] = {};
    const size_t n = w.size();
    size_t k = 0;
    for (; k + 4 <= n; k += 4)
      for (size_t j = 0; j < 4; ++j) sums[j] += double(to_float(values[k + j])) * w[k + j];
    for (; k < n; ++k) sums[0] += double(to_float(values[k])) * w[k];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  });
}

}  // namespace bascule::reference
