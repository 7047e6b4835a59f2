// The sum that every product here is made of.
#pragma once

#include <vector>

#include "tensor/quant/rounding.h"
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

// Every row of x as it enters the products: widened, and rounded as the op asks.
class RoundedRows {
 public:
  RoundedRows(const Tensor<2>& x, Rounding rounding) {
    for (int64_t i = 0; i < x.extent[0]; ++i) {
      std::vector<float>& row = rows_.emplace_back(size_t(x.extent[1]));
      for (int64_t k = 0; k < x.extent[1]; ++k) row[size_t(k)] = load(x.row(i), x.dtype, k);
      round_row(rounding, row.data(), x.extent[1], row.data());
    }
  }
  const std::vector<float>& operator[](int64_t i) const { return rows_[size_t(i)]; }

 private:
  std::vector<std::vector<float>> rows_;
};

// Four partial sums, since one would wait for each addition in turn and whole models run on these
// rows.
inline double dot(const std::vector<float>& x, const std::vector<float>& w) {
  double sums[4] = {};
  const size_t n = w.size();
  size_t k = 0;
  for (; k + 4 <= n; k += 4)
    for (size_t j = 0; j < 4; ++j) sums[j] += double(x[k + j]) * w[k + j];
  for (; k < n; ++k) sums[0] += double(x[k]) * w[k];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace bascule::reference
