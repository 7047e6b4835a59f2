// How products are cut for the threads. Cuts change no bit (loops.h), so they follow speed alone.
#pragma once

#include <algorithm>
#include <span>

#include "kernels/cpu/loops.h"
#include "kernels/kernel.h"
#include "tensor/tensor.h"

namespace bascule::cpu {

// Tokens whose row pointers a task keeps at a time; loops that reuse weights want as many.
inline constexpr int64_t kMaxTokens = 96;

// Rows of weights for one task: long enough that handing it out costs nothing beside it (some
// 16,000 cycles at 6 bytes or 16 products a cycle), short enough that threads end together.
inline int64_t rows_of_task(int64_t n_tokens, int64_t n_in, Dtype weight_type) {
  constexpr int64_t kTaskCycles = 16000, kBytesPerCycle = 6, kProductsPerCycle = 16, kGrain = 16;
  const int64_t cycles_of_row = std::max(n_in * size_bytes(weight_type) / kBytesPerCycle,
                                         n_tokens * n_in / kProductsPerCycle);
  const int64_t rows = kTaskCycles / std::max<int64_t>(1, cycles_of_row);
  return std::max(kGrain, rows / kGrain * kGrain);
}

// Pointers to rows [first, first + out.size()) of a matrix.
template <typename Pointer>
void point_to_rows(const Tensor<2>& t, int64_t first, std::span<Pointer> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<Pointer>(t.row(first + int64_t(i)));
}

// Cuts a worker's scratch into arrays; with no scratch it only measures. Allocates nothing.
struct ScratchCutter {
  std::byte* base = nullptr;
  int64_t used_bytes = 0;

  template <typename T>
  T* take(int64_t n) {
    const int64_t offset = used_bytes;
    used_bytes += (n * int64_t(sizeof(T)) + 63) / 64 * 64;
    return base ? reinterpret_cast<T*>(base + offset) : nullptr;
  }
};

// A reason if the loops can't read this matrix, or not as an activation.
inline Refusal refuses_weight(const Tensor<2>& w) {
  if (!is_plain_float(w.dtype)) return "weights are " + std::string(name(w.dtype));
  if (w.stride[1] != 1) return "columns of weights aren't contiguous";
  return {};
}
inline Refusal refuses_activation(const Tensor<2>& x) {
  if (x.dtype != Dtype::kF32 && x.dtype != Dtype::kBf16)
    return "activations are " + std::string(name(x.dtype));
  if (x.stride[1] != 1) return "columns of activations aren't contiguous";
  return {};
}

}  // namespace bascule::cpu
