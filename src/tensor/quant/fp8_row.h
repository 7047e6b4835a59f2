// FP8 weights with one scale a row, as AMD Quark stores them under the name per-token per-channel
// ("ptpc_fp8"): W[r, c] = e4m3(r, c) · scale[r]. Scales are F32 in files of Quark 0.12 and later
// and BF16 in those of 0.11; they are widened to F32 before they come here.
#pragma once

#include "tensor/quant/fp8_block.h"

namespace bascule {

// codes [n_rows, n_columns], scales [n_rows], values as codes; each product is rounded once.
void decode_fp8_rows(View<const uint8_t, 2> codes, View<const float, 1> scales,
                     View<float, 2> values);

}  // namespace bascule
