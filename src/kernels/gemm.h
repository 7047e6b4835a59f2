// Products of activations with one weight matrix.
#pragma once

#include "kernels/kernel.h"
#include "tensor/tensor.h"

namespace bascule {

// y = x Wᵀ, or y += x Wᵀ. Products of the stored values, summed in float.
struct MatMul {
  static constexpr std::string_view kName = "matmul";
  Tensor<2> x;       // [n_tokens, n_in] F32 or BF16
  Tensor<2> weight;  // [n_out, n_in] F32, BF16 or F16; columns are contiguous
  View<float, 2> y;  // [n_tokens, n_out]
  bool accumulate = false;

  int64_t n_tokens() const { return y.extent[0]; }
  int64_t n_in() const { return weight.extent[1]; }
  int64_t n_out() const { return weight.extent[0]; }
  Cost cost() const;
};

}  // namespace bascule
