// The sum that every product here is made of.
#pragma once

#include "tensor/tensor.h"

namespace bascule::reference {

// Row i of a · row j of b, over b's columns.
inline double dot(const Tensor<2>& a, int64_t i, const Tensor<2>& b, int64_t j) {
  const void* x = a.row(i);
  const void* w = b.row(j);
  double sum = 0;
  for (int64_t k = 0; k < b.extent[1]; ++k)
    sum += double(load(x, a.dtype, k)) * double(load(w, b.dtype, k));
  return sum;
}

}  // namespace bascule::reference
