// To what the inputs of products are rounded, beside the type that buffers have.
#pragma once

#include <string_view>

#include "tensor/quant/rounding.h"
#include "tensor/weight_format.h"

namespace bascule {

enum class ActivationScheme {
  kPlain,     // to nothing
  kInt8,      // int8 where weights are MXFP4: there products are of integers, and fastest
  kInt8All,   // int8 for every linear layer
  kFp8,       // FP8 where weights are in a block format: W4A8, W8A8
  kDeclared,  // as the formats' makers declare them: MXFP4 with MXFP4, FP8 with FP8
};
std::string_view name(ActivationScheme scheme);  // "plain", "int8", "int8-all", "fp8", "declared"

// For a linear layer's weight of this format. The router, the head, the indexer's weights and the
// absorbed kv_b are not asked for: their inputs stay as they are in every scheme.
Rounding rounding_of(ActivationScheme scheme, WeightFormat format);

}  // namespace bascule
