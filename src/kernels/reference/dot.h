// The sum that every product here is made of.
#pragma once

#include "tensor/tensor.h"

namespace bascule::reference {

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

// Row i of a · row j of b, over b's columns. Four partial sums, since one would wait for each
// addition in turn and whole models run on these rows.
inline double dot(const Tensor<2>& a, int64_t i, const Tensor<2>& b, int64_t j) {
  return with_type(a.row(i), a.dtype, [&](const auto* x) {
    return with_type(b.row(j), b.dtype, [&](const auto* w) {
      double sums[4] = {};
      const int64_t n = b.extent[1];
      int64_t k = 0;
      for (; k + 4 <= n; k += 4)
        for (int i = 0; i < 4; ++i) sums[i] += double(to_float(x[k + i])) * to_float(w[k + i]);
      for (; k < n; ++k) sums[0] += double(to_float(x[k])) * to_float(w[k]);
      return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    });
  });
}

}  // namespace bascule::reference
