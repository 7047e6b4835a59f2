// The formats that a linear layer's weight may have in memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "tensor/dtype.h"

namespace bascule {

enum class WeightFormat : uint8_t {
  kF32,
  kBf16,
  kF16,
  kFp8Blocks,   // quant/fp8_block.h; scales F32
  kFp8Rows,     // quant/fp8_row.h; scales F32
  kMxfp4,       // quant/mxfp4.h; scales E8M0
  kMxfp4Tiles,  // quant/mxfp4_tiles.h: the same in another order
};

std::string_view name(WeightFormat format);  // "BF16", "FP8 128x128", "FP8 rows", "MXFP4"
bool is_plain(WeightFormat format);
WeightFormat plain_format(Dtype dtype);  // of F32, BF16 and F16

// Bytes of a row's codes (of its share of a tile), and of its scales; columns that share a scale
// (plain: all of them).
int64_t row_bytes(WeightFormat format, int64_t n_columns);
int64_t scale_bytes(WeightFormat format, int64_t n_columns);
int64_t scale_columns(WeightFormat format, int64_t n_columns);

}  // namespace bascule
