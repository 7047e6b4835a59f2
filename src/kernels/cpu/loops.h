// The inner loops that an instruction set brings: what runs between two barriers on one core. The
// rows of this folder cut an op into such blocks and hand them to the threads; they are compiled
// for the baseline and reach an instruction set through this table alone. Plain data and pointers:
// files with flags of their own must not share inline functions with the rest of the program.
//
// The law of the sums: every y below is added up in an order that depends on the block's width
// (n_in, n_rows) only. How a row of this folder cuts tokens, outputs and threads changes no bit.
#pragma once

#include <cstdint>

#include "tensor/weight_format.h"

namespace bascule::cpu {

// y[t][r] = Σ_k x[t][k] · w[r][k], or added to y. Weights in any format; x F32 or BF16.
struct DotBlock {
  const void* const* w = nullptr;       // [n_rows] rows of n_in
  const void* const* scales = nullptr;  // [n_rows] rows of scales; null for plain formats
  const void* const* x = nullptr;       // [n_tokens] rows of n_in
  float* const* y = nullptr;            // [n_tokens] rows of n_rows
  WeightFormat format = WeightFormat::kF32;
  Dtype x_type = Dtype::kF32;
  int64_t n_rows = 0, n_in = 0, n_tokens = 0;
  bool accumulate = false;
};

// y[t][c] = Σ_r x[t][r] · w[r][c], r ascending.
struct MixBlock {
  const void* const* w = nullptr;       // [n_rows] rows of n_columns
  const void* const* scales = nullptr;  // [n_rows] rows of scales; null for plain formats
  const float* const* x = nullptr;      // [n_tokens] rows of n_rows
  float* const* y = nullptr;            // [n_tokens] rows of n_columns
  WeightFormat format = WeightFormat::kF32;
  int64_t n_rows = 0, n_columns = 0, n_tokens = 0;
};

// y[t][r] = Σ_k x[t][k] · w[r][k], or added to y, of int8 inputs with MXFP4 tiles (int8.h).
struct TileBlock {
  const void* codes = nullptr;  // of the tile that has the first row
  const void* scales = nullptr;
  int64_t tile_bytes = 0, scale_bytes = 0;  // from a tile to the next
  int64_t first_row = 0;                    // the first row's place in its tile
  int64_t n_rows = 0, n_groups = 0;         // groups of 32 columns
  const void* const* x = nullptr;           // [n_tokens] as quantise() writes them
  float* const* y = nullptr;                // [n_tokens] rows of n_rows
  int64_t n_tokens = 0;
  bool accumulate = false;
};
inline constexpr int64_t kInt8GroupBytes = 40;  // of a quantised group: codes, scale, offset

struct Loops {
  void (*dot)(const DotBlock&);
  void (*mix)(const MixBlock&);
  void (*dot_tiles)(const TileBlock&);
  // n inputs, F32 or BF16, to groups of int8.
  void (*quantise)(const void* x, Dtype x_type, int64_t n, void* out);
  // out[i] = gate[i] / (1 + exp(-gate[i])) · up[i], as F32 or BF16
  void (*swiglu)(const float* gate, const float* up, int64_t n, void* out, Dtype out_type);
  // x = softmax(scale · x)
  void (*softmax)(float* x, int64_t n, float scale);
  // out[i] = Σ_h weights[h] · max(0, x[h · stride + i]), h ascending; NaN stays NaN
  void (*relu_sum)(const float* x, int64_t stride, const float* weights, int64_t n_heads, int64_t n,
                   float* out);
  // h[c] += Σ_j weights[j] · rows[j · stride + c], j ascending
  void (*add_weighted)(const float* rows, int64_t stride, const float* weights, int64_t n_rows,
                       int64_t n, float* h);
  // The norms of pointwise.h for one token.
  void (*rms_norm)(const float* x, const void* weight, Dtype weight_type, int64_t n, float eps,
                   void* y, Dtype y_type);
  void (*layer_norm)(const float* x, const void* weight, Dtype weight_type, const void* bias,
                     Dtype bias_type, int64_t n, float eps, float* y);
  // out[i] = x[i], as F32 or BF16; and back from any plain float type
  void (*narrow)(const float* x, int64_t n, void* out, Dtype out_type);
  void (*widen)(const void* x, Dtype x_type, int64_t n, float* out);
};

extern const Loops kPortableLoops;
extern const Loops kAvx2Loops, kAvx512Loops;  // x86-64
void dot_tiles_avx512vnni(const TileBlock&);  // in place of kAvx512Loops' own
extern const Loops kNeonLoops;                // Armv8-A

}  // namespace bascule::cpu
