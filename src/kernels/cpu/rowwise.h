// Loops over the columns of one token, written once over an instruction-set trait V (simd.h).
#pragma once

#include "kernels/cpu/loops.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/simd.h"

namespace bascule::cpu {
namespace {

// f(load, store, i) for each vector of [0, n): whole ones, then the rest, whose missing lanes load
// as zero and aren't stored.
template <class V>
struct Whole {
  template <typename T>
  [[gnu::always_inline]] typename V::Float load(const T* p) const {
    return V::load(p);
  }
  template <typename T>
  [[gnu::always_inline]] void store(T* p, typename V::Float v) const {
    V::store(p, v);
  }
};
template <class V>
struct First {
  int64_t n;
  template <typename T>
  [[gnu::always_inline]] typename V::Float load(const T* p) const {
    return load_first<V>(p, n);
  }
  template <typename T>
  [[gnu::always_inline]] void store(T* p, typename V::Float v) const {
    store_first<V>(p, v, n);
  }
};
template <class V, typename F>
[[gnu::always_inline]] inline void each_vector(int64_t n, F&& f) {
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) f(Whole<V>{}, i);
  if (i < n) f(First<V>{n - i}, i);
}

template <class V>
[[gnu::always_inline]] inline float sum_of(typename V::Float v) {
  return V::sum_lanes(v, v, v, v)[0];
}

// f(T{}) with T the type of an output.
template <typename F>
[[gnu::always_inline]] inline void with_output(Dtype type, F&& f) {
  type == Dtype::kBf16 ? f(bf16{}) : f(float{});
}

template <class V>
void swiglu(const float* gate, const float* up, int64_t n, void* out, Dtype out_type) {
  with_output(out_type, [&](auto element) {
    auto* y = static_cast<decltype(element)*>(out);
    each_vector<V>(n, [&](auto io, int64_t i) {
      const auto g = io.load(gate + i);
      io.store(y + i, g / (1 + exp<V>(-g)) * io.load(up + i));
    });
  });
}

template <class V>
void softmax(float* x, int64_t n, float scale) {
  float largest = -__builtin_inff();
  for (int64_t i = 0; i < n; ++i) largest = x[i] * scale > largest ? x[i] * scale : largest;
  typename V::Float sum = {};
  each_vector<V>(n, [&](auto io, int64_t i) {
    io.store(x + i, exp<V>(io.load(x + i) * scale - largest));
    sum += io.load(x + i);
  });
  const float one_over = 1 / sum_of<V>(sum);
  each_vector<V>(n, [&](auto io, int64_t i) { io.store(x + i, io.load(x + i) * one_over); });
}

template <class V>
void relu_sum(const float* x, int64_t stride, const float* weights, int64_t n_heads, int64_t n,
              float* out) {
  each_vector<V>(n, [&](auto io, int64_t i) {
    typename V::Float sum = {};
    for (int64_t h = 0; h < n_heads; ++h)
      sum = V::fma(V::set(weights[h]), V::max(V::set(0), io.load(x + h * stride + i)), sum);
    io.store(out + i, sum);
  });
}

template <class V>
void add_weighted(const float* rows, int64_t stride, const float* weights, int64_t n_rows,
                  int64_t n, float* h) {
  each_vector<V>(n, [&](auto io, int64_t i) {
    typename V::Float sum = {};
    for (int64_t j = 0; j < n_rows; ++j)
      sum = V::fma(V::set(weights[j]), io.load(rows + j * stride + i), sum);
    io.store(h + i, io.load(h + i) + sum);
  });
}

template <class V>
void narrow(const float* x, int64_t n, void* out, Dtype out_type) {
  with_output(out_type, [&](auto element) {
    auto* y = static_cast<decltype(element)*>(out);
    each_vector<V>(n, [&](auto io, int64_t i) { io.store(y + i, io.load(x + i)); });
  });
}

template <class V>
void widen(const void* x, Dtype x_type, int64_t n, float* out) {
  with_type(x_type, [&](auto element) {
    const auto* from = static_cast<const decltype(element)*>(x);
    each_vector<V>(n, [&](auto io, int64_t i) { io.store(out + i, io.load(from + i)); });
  });
}

// Calls f(weights, c, n) for blocks of at most 256 columns of a row of weights, as floats.
template <class V, typename F>
[[gnu::always_inline]] inline void each_widened(const void* row, Dtype type, int64_t n_columns,
                                                F&& f) {
  constexpr int64_t kBlock = 256;
  alignas(64) float wide[kBlock];
  for (int64_t c = 0; c < n_columns; c += kBlock) {
    const int64_t n = least(kBlock, n_columns - c), size = type == Dtype::kF32 ? 4 : 2;
    widen<V>(static_cast<const char*>(row) + c * size, type, n, wide);
    f(wide, c, n);
  }
}

template <class V>
void rms_norm(const float* x, const void* weight, Dtype weight_type, int64_t n, float eps, void* y,
              Dtype y_type) {
  typename V::Float squares = {};
  each_vector<V>(n, [&](auto io, int64_t i) {
    const auto v = io.load(x + i);
    squares = V::fma(v, v, squares);
  });
  const float scale = 1 / __builtin_sqrtf(sum_of<V>(squares) / float(n) + eps);
  each_widened<V>(weight, weight_type, n, [&](const float* weights, int64_t c, int64_t width) {
    with_output(y_type, [&](auto element) {
      auto* out = static_cast<decltype(element)*>(y) + c;
      each_vector<V>(width, [&](auto io, int64_t i) {
        io.store(out + i, io.load(x + c + i) * scale * io.load(weights + i));
      });
    });
  });
}

template <class V>
void layer_norm(const float* x, const void* weight, Dtype weight_type, const void* bias,
                Dtype bias_type, int64_t n, float eps, float* y) {
  typename V::Float sum = {}, squares = {};
  each_vector<V>(n, [&](auto io, int64_t i) { sum += io.load(x + i); });
  const float mean = sum_of<V>(sum) / float(n);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] - mean;
  each_vector<V>(n, [&](auto io, int64_t i) {
    const auto d = io.load(y + i);
    squares = V::fma(d, d, squares);
  });
  const float scale = 1 / __builtin_sqrtf(sum_of<V>(squares) / float(n) + eps);
  each_widened<V>(weight, weight_type, n, [&](const float* weights, int64_t c, int64_t width) {
    each_vector<V>(width, [&](auto io, int64_t i) {
      io.store(y + c + i, io.load(y + c + i) * scale * io.load(weights + i));
    });
  });
  each_widened<V>(bias, bias_type, n, [&](const float* biases, int64_t c, int64_t width) {
    each_vector<V>(width, [&](auto io, int64_t i) {
      io.store(y + c + i, io.load(y + c + i) + io.load(biases + i));
    });
  });
}

}  // namespace
}  // namespace bascule::cpu
