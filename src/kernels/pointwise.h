// Ops that touch each activation once: embedding, norms, rotations. The residual stream and sums
// are float; an output that a product reads next is F32 or BF16, as the plan chose.
#pragma once

#include "kernels/kernel.h"
#include "tensor/tensor.h"

namespace bascule {

// y[t] = table[tokens[t]]. Token ids have been checked against the vocabulary.
struct Embed {
  static constexpr std::string_view kName = "embed";
  View<const int32_t, 1> tokens;  // [n_tokens]
  Tensor<2> table;                // [vocab, d_model] F32, BF16 or F16
  View<float, 2> y;               // [n_tokens, d_model]

  int64_t n_tokens() const { return y.extent[0]; }
  Cost cost() const;
};

// Root mean square normalisation (Zhang and Sennrich 2019): y = x / sqrt(mean(x²) + eps) · weight,
// row by row.
struct RmsNorm {
  static constexpr std::string_view kName = "rms_norm";
  View<const float, 2> x;  // [n_tokens, n_columns]
  Tensor<1> weight;        // [n_columns] F32, BF16 or F16
  float eps = 0;
  Tensor<2> y;  // [n_tokens, n_columns] F32 or BF16; F32 may be x itself

  int64_t n_tokens() const { return x.extent[0]; }
  Cost cost() const;
};

// Layer normalisation (Ba et al. 2016): y = (x - mean) / sqrt(var + eps) · weight + bias.
struct LayerNorm {
  static constexpr std::string_view kName = "layer_norm";
  View<const float, 2> x;  // [n_tokens, n_columns]
  Tensor<1> weight, bias;  // [n_columns] F32, BF16 or F16
  float eps = 0;
  View<float, 2> y;  // [n_tokens, n_columns]; may be x

  int64_t n_tokens() const { return x.extent[0]; }
  Cost cost() const;
};

// Cosines and sines of each token's angles: position · inverse_frequency[j], the product and its
// reduction in double (in float, position 10⁶ is off by 0.04 rad). One table serves all layers.
struct RopeTable {
  static constexpr std::string_view kName = "rope_table";
  View<const int32_t, 1> position;         // [n_tokens]
  View<const float, 1> inverse_frequency;  // [d_rope / 2]
  float magnitude = 1;                     // multiplies both; not 1 only for YaRN
  View<float, 2> cos, sin;                 // [n_tokens, d_rope / 2]

  int64_t n_tokens() const { return position.extent[0]; }
  Cost cost() const;
};

// Rotary embedding (Su et al. 2021) in place. Pair j is (2j, 2j + 1) when interleaved, else
// (j, j + d_rope / 2).
struct Rope {
  static constexpr std::string_view kName = "rope";
  View<float, 3> x;               // [n_tokens, n_heads, d_rope]
  View<const float, 2> cos, sin;  // [n_tokens, d_rope / 2]
  bool interleaved = true;

  int64_t n_tokens() const { return x.extent[0]; }
  Cost cost() const;
};

}  // namespace bascule
