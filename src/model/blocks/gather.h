// Gathering of what tensor-parallel ranks computed: each has its columns, afterwards all have all.
#pragma once

#include <array>

#include "device/comm.h"
#include "model/placement.h"
#include "tensor/tensor.h"

namespace bascule {

inline View<std::byte, 2> bytes_of(const Tensor<2>& t) {
  const int64_t element = size_bytes(t.dtype);
  return {static_cast<std::byte*>(t.data),
          {t.extent[0], t.extent[1] * element},
          {t.stride[0] * element, 1}};
}
inline View<std::byte, 2> bytes_of(View<float, 2> v) { return bytes_of(Tensor<2>::of(v)); }
inline View<std::byte, 2> bytes_of(View<int32_t, 2> v) {
  return {
      reinterpret_cast<std::byte*>(v.data), {v.extent[0], v.extent[1] * 4}, {v.stride[0] * 4, 1}};
}

// Columns are of n_units parts of equal width (heads, or single columns), cut as Placement cuts
// n_units.
inline void gather_columns(Comm* tp, View<std::byte, 2> all, int64_t n_units) {
  if (!tp) return;
  constexpr int kMaxRanks = 64;
  std::array<int64_t, kMaxRanks + 1> first{};
  BASCULE_CHECK_LE(tp->size(), kMaxRanks);
  const int64_t unit_bytes = all.extent[1] / n_units;
  for (int r = 0; r < tp->size(); ++r)
    first[r + 1] = part_of(n_units, tp->size(), r).end * unit_bytes;
  tp->gather_columns(all, {first.data(), size_t(tp->size()) + 1});
}

}  // namespace bascule
