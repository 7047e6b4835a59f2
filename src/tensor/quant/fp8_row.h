// FP8 weights with one scale a row, as AMD Quark stores them under the name per-token per-channel
// ("ptpc_fp8"): W[r, c] = e4m3(r, c) · scale[r]. Scales are F32 in files of Quark 0.12 and later
// and BF16 in those of 0.11; they are widened to F32 before they come here.
#pragma once

#include "tensor/dtype.h"
#include "tensor/quant/fp8_block.h"

namespace bascule {

// codes [n_rows, n_columns], scales [n_rows], values as codes; each product is rounded once.
void decode_fp8_rows(View<const uint8_t, 2> codes, View<const float, 1> scales,
                     View<float, 2> values);

// The other way, as Quark 0.13 writes it: a row's scale is its largest magnitude / 448, at least
// 2^-23. The codes come from arithmetic in the type that the weight was stored in (F32, BF16 or
// F16): for BF16, e4m3(bf16(w / bf16(scale))), rounded to nearest even each time, which is the
// neighbour of e4m3(w / scale) for about 3 % of all weights. Values are finite.
void encode_fp8_rows(View<const float, 2> values, Dtype stored, View<uint8_t, 2> codes,
                     View<float, 1> scales);

// The scale, and it as `stored` has it.
float fp8_row_scale(float largest);
float rounded_to(Dtype stored, float x);

}  // namespace bascule
