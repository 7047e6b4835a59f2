// FP8 weights with one float scale a block of 128 x 128, as the family's official FP8 checkpoints
// store them: W[r, c] = e4m3(r, c) · scale[r / 128, c / 128]. Blocks at the right and lower edge
// may be cut. Formats: OCP 8-bit floating point, 2023 (e4m3 without infinity; 0x7f and 0xff are
// NaN).
#pragma once

#include <cstdint>

#include "tensor/view.h"

namespace bascule {

inline constexpr int64_t kFp8Block = 128;
inline constexpr float kFp8Largest = 448;

constexpr int64_t fp8_blocks(int64_t extent) { return (extent + kFp8Block - 1) / kFp8Block; }

// The value of an e4m3 code.
float fp8_e4m3_value(uint8_t code);

// codes [n_rows, n_columns], scales [fp8_blocks(n_rows), fp8_blocks(n_columns)], values as codes.
void decode_fp8_blocks(View<const uint8_t, 2> codes, View<const float, 2> scales,
                       View<float, 2> values);

// The nearest code, ties to the even one; past 448 it is that of 448. Zeros keep their sign.
uint8_t fp8_e4m3_code(float x);

// The other way: a block's scale is its largest magnitude / 448, or 1 where all are zero; each
// value is divided by it (a product with the reciprocal would give other codes). Values are finite.
void encode_fp8_blocks(View<const float, 2> values, View<uint8_t, 2> codes, View<float, 2> scales);

}  // namespace bascule
