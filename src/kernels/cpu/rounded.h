// The inputs of a product as the op asks for them: as they are, or rounded once by all threads into
// the scratch that these share, where products then read F32.
#pragma once

#include "base/threads.h"
#include "kernels/cpu/products.h"
#include "tensor/quant/rounding.h"

namespace bascule::cpu {

// What rounding n_rows of n_columns takes.
inline int64_t rounded_bytes(Rounding rounding, int64_t n_rows, int64_t n_columns) {
  return rounding == Rounding::kNone ? 0 : n_rows * n_columns * int64_t(sizeof(float));
}

// x, or rows of its own: row i is x's row row_of(i), rounded.
template <typename RowOf>
Tensor<2> rounded_rows(const Tensor<2>& x, Rounding rounding, int64_t n_rows, RowOf row_of,
                       Threads& threads, const Loops& loops) {
  const int64_t n_columns = x.extent[1];
  BASCULE_CHECK_LE(rounded_bytes(rounding, n_rows, n_columns), int64_t(threads.shared().size()));
  const auto out = View<float, 2>::packed(reinterpret_cast<float*>(threads.shared().data()),
                                          {n_rows, n_columns});
  threads.ranges(n_rows, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      loops.widen(x.row(row_of(i)), x.dtype, n_columns, &out(i, 0));
      round_row(rounding, &out(i, 0), n_columns, &out(i, 0));
    }
  });
  return Tensor<2>::of(out);
}

}  // namespace bascule::cpu
