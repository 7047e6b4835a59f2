// Products of activations with one weight matrix.
#pragma once

#include "kernels/kernel.h"
#include "tensor/quant/rounding.h"
#include "tensor/weight_matrix.h"

namespace bascule {

// y = r(x) Wᵀ, or y += r(x) Wᵀ, r the rounding of x. Products of the stored values, summed in
// float.
struct MatMul {
  static constexpr std::string_view kName = "matmul";
  Tensor<2> x;          // [n_tokens, n_in] F32 or BF16
  WeightMatrix weight;  // [n_out, n_in]
  View<float, 2> y;     // [n_tokens, n_out]
  bool accumulate = false;
  Rounding rounding = Rounding::kNone;

  int64_t n_tokens() const { return y.extent[0]; }
  int64_t n_in() const { return weight.n_in; }
  int64_t n_out() const { return weight.n_out; }
  Cost cost() const;
};

}  // namespace bascule
