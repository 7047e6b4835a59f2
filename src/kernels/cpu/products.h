// How products are cut for the threads. Cuts change no bit (loops.h), so they follow speed alone.
#pragma once

#include <algorithm>
#include <span>

#include "kernels/cpu/loops.h"
#include "kernels/kernel.h"
#include "tensor/weight_matrix.h"

namespace bascule::cpu {

// Tokens whose row pointers a task keeps at a time; loops that reuse weights want as many.
inline constexpr int64_t kMaxTokens = 96;

// What a row of weights costs with its tokens, in cycles: it comes at some 6 bytes a cycle, or 4 of
// codes that must be decoded, and makes some 16 products.
inline int64_t cycles_of_row(int64_t n_tokens, int64_t n_in, WeightFormat format) {
  const int64_t bytes = row_bytes(format, n_in) + scale_bytes(format, n_in);
  return 1 + std::max(bytes / (is_plain(format) ? 6 : 4), n_tokens * n_in / 16);
}

// Rows for one task of a launch that takes `total_cycles`: eight tasks a thread, so that threads
// end together though neighbours slow some of them; of 5 µs at least, or handing them out would
// show; of 20 µs at most. Many tokens want whole panels of rows (matmul.h), few want streams.
inline int64_t rows_of_task(int64_t row_cycles, int64_t total_cycles, int64_t n_tokens,
                            int64_t n_threads) {
  const int64_t task_cycles = std::clamp<int64_t>(total_cycles / (8 * n_threads), 16000, 64000);
  const int64_t grain = n_tokens <= 4 ? 8 : 64;
  return std::max<int64_t>(1, task_cycles / row_cycles / grain) * grain;
}

// Pointers to rows [first, first + codes.size()) of weights, and to their scales.
inline void point_to_rows(const WeightMatrix& w, int64_t first, std::span<const void*> codes,
                          const void** scales) {
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = w.row(first + int64_t(i));
    scales[i] = w.scale_row(first + int64_t(i));
  }
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
inline Refusal refuses_weight(const WeightMatrix& w) {
  if (w.format == WeightFormat::kMxfp4Tiles) return "weights are in tiles, for int8 inputs";
  if (w.first_column != 0) return "columns of weights begin inside a block of scales";
  return {};
}
inline Refusal refuses_activation(const Tensor<2>& x) {
  if (x.dtype != Dtype::kF32 && x.dtype != Dtype::kBf16)
    return "activations are " + std::string(name(x.dtype));
  if (x.stride[1] != 1) return "columns of activations aren't contiguous";
  return {};
}

}  // namespace bascule::cpu
