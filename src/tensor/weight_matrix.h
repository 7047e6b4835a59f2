// A linear layer's weight [n_out, n_in] where and how it is stored: plain floats, or codes with
// scales in one of the block formats of quant/. A look at memory; owns nothing. Rows are what
// kernels read and ranks share, so each is one run of codes and one of scales.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"
#include "tensor/weight_format.h"

namespace bascule {

struct WeightMatrix {
  WeightFormat format = WeightFormat::kF32;
  const void* codes = nullptr;   // null: this shape, some day
  const void* scales = nullptr;  // of the row that `codes` begins with
  int64_t n_out = 0, n_in = 0;
  int64_t row_stride = 0;    // bytes between rows of codes, or tiles
  int64_t scale_stride = 0;  // bytes between rows of scales; a row of FP8 blocks serves 128
  int64_t first_row = 0;     // rows of the same block before this matrix's first
  int64_t first_column = 0;  // columns of the same scale before its first

  WeightMatrix() = default;
  // Plain values; their columns must be contiguous.
  WeightMatrix(const Tensor<2>& values);  // NOLINT(google-explicit-constructor)
  // Rows without gaps.
  static WeightMatrix packed(WeightFormat format, const void* codes, const void* scales,
                             int64_t n_out, int64_t n_in);

  // Row r's codes, or those of its tile.
  const void* row(int64_t r) const {
    if (format == WeightFormat::kMxfp4Tiles) r = (first_row + r) / 8;
    return static_cast<const char*>(codes) + r * row_stride;
  }
  const void* scale_row(int64_t r) const;
  WeightMatrix slice(int64_t first, int64_t count) const;
  WeightMatrix columns(int64_t first, int64_t count) const;

  // One weight, decoded. For reference rows and tests.
  float operator()(int64_t r, int64_t c) const;
  // Row r's weights to out[n_in].
  void decode_row(int64_t r, float* out) const;

  int64_t n_weights() const { return n_out * n_in; }
  int64_t size_bytes() const;  // of codes and scales
  explicit operator bool() const { return codes != nullptr; }
};

}  // namespace bascule
