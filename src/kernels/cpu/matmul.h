// The blocked loops of every product, written once over an instruction-set trait V (simd.h).
//
// dot: y[t][r] = Σ_k x[t][k] w[r][k], both rows contiguous in k, as checkpoints store them. A tile
// of rows × tokens keeps one vector of sums a pair: lane j adds k ≡ j (mod lanes), k ascending,
// and a fixed tree adds the lanes. That is the whole definition of a sum here; the shape of the
// tile, where weights are widened, and blocks over k (which put sums aside as whole vectors) leave
// it as it is.
//   one token         8 rows a tile, read as stored: as many chains as two FMA pipes need
//   few tokens        4 rows × tokens, read as stored
//   more              4 rows × kDepth are widened to float in L1 once and meet all tokens of the
//                     block; what limits then is FMA (docs/notes/cpu-matmul.md)
// mix: y[t][c] = Σ_r x[t][r] w[r][c]: lanes are columns, rows are added one after another.
#pragma once

#include "kernels/cpu/loops.h"
#include "kernels/cpu/simd.h"

namespace bascule::cpu {
namespace {

constexpr int64_t kDepth = 1024;  // columns of a block: 4 widened rows are 16 KiB, half of L1
constexpr int64_t kWideStride = kDepth + 16;  // rows 4096 bytes apart would share their sets of L1
constexpr int64_t kPanelRows = 16;            // rows that a block of tokens meets while it is in L2
constexpr int64_t kTokenBlock = 96;           // tokens of a block: 192 KiB of bf16 at kDepth
constexpr int64_t kDirectTokens = 4;  // up to here widening twice costs less than storing it

[[gnu::always_inline]] inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// f(T{}) with T the element type.
template <typename F>
[[gnu::always_inline]] inline void with_type(Dtype type, F&& f) {
  switch (type) {
    case Dtype::kBf16:
      return f(bf16{});
    case Dtype::kF16:
      return f(f16{});
    default:
      return f(float{});
  }
}

// sum[r][t] += x[t] · w[r] over n columns, for a tile.
template <class V, int R, int T, typename W, typename X>
[[gnu::always_inline]] inline void add_products(typename V::Float (&sum)[R * T], const W* const* w,
                                                const X* const* x, int64_t n) {
  using Float = typename V::Float;
  const W* ws[R];
  const X* xs[T];
  unroll<R>([&](auto r) { ws[r] = w[r]; });
  unroll<T>([&](auto t) { xs[t] = x[t]; });
  Float s[R * T];
  unroll<R * T>([&](auto i) { s[i] = sum[i]; });
  int64_t k = 0;
  for (; k + V::kLanes <= n; k += V::kLanes) {
    Float xv[T];
    unroll<T>([&](auto t) { xv[t] = V::load(xs[t] + k); });
    unroll<R>([&](auto r) {
      const Float wv = V::load(ws[r] + k);
      unroll<T>([&](auto t) { s[r * T + t] = V::fma(wv, xv[t], s[r * T + t]); });
    });
  }
  if (k < n) {
    Float xv[T];
    unroll<T>([&](auto t) { xv[t] = load_first<V>(xs[t] + k, n - k); });
    unroll<R>([&](auto r) {
      const Float wv = load_first<V>(ws[r] + k, n - k);
      unroll<T>([&](auto t) { s[r * T + t] = V::fma(wv, xv[t], s[r * T + t]); });
    });
  }
  unroll<R * T>([&](auto i) { sum[i] = s[i]; });
}

// y[0 … n) = the four sums, or += them.
[[gnu::always_inline]] inline void write(Four sums, float* y, int64_t n, bool accumulate) {
  for (int64_t i = 0; i < n; ++i) y[i] = accumulate ? y[i] + sums[i] : sums[i];
}

// A tile's sums to y; rows past n_rows and tokens past n_tokens were repeats and are dropped.
template <class V, int R, int T>
[[gnu::always_inline]] inline void finish(const typename V::Float (&sum)[R * T], const DotBlock& b,
                                          int64_t row, int64_t token) {
  unroll<R / 4>([&](auto q) __attribute__((always_inline)) {
    unroll<T>([&](auto t) __attribute__((always_inline)) {
      if (token + t >= b.n_tokens || row + 4 * q >= b.n_rows) return;
      const Four sums = V::sum_lanes(sum[(4 * q) * T + t], sum[(4 * q + 1) * T + t],
                                     sum[(4 * q + 2) * T + t], sum[(4 * q + 3) * T + t]);
      write(sums, b.y[token + t] + row + 4 * q, least(4, b.n_rows - row - 4 * q), b.accumulate);
    });
  });
}

// Pointers to rows first, first + 1, …, moved by `offset` elements; past the last they repeat it.
template <typename T, int n>
[[gnu::always_inline]] inline void rows_from(const void* const* rows, int64_t first, int64_t n_rows,
                                             int64_t offset, const T* (&out)[n]) {
  unroll<n>(
      [&](auto i) { out[i] = static_cast<const T*>(rows[least(first + i, n_rows - 1)]) + offset; });
}

template <class V, int R, int T, typename W, typename X>
[[gnu::always_inline]] inline void direct_tile(const DotBlock& b, int64_t row, int64_t token) {
  const W* w[R];
  const X* x[T];
  rows_from(b.w, row, b.n_rows, 0, w);
  rows_from(b.x, token, b.n_tokens, 0, x);
  typename V::Float sum[R * T] = {};
  add_products<V, R, T>(sum, w, x, b.n_in);
  finish<V, R, T>(sum, b, row, token);
}

// Calls f(Index<T>{}, token) for tiles of kTokens, then of 2, that cover the tokens.
template <class V, typename F>
[[gnu::always_inline]] inline void token_tiles(int64_t n_tokens, F&& f) {
  int64_t token = 0;
  for (; token + V::kTokens <= n_tokens; token += V::kTokens) f(Index<V::kTokens>{}, token);
  for (; token < n_tokens; token += 2) f(Index<2>{}, token);
}

template <class V, typename W, typename X>
void dot_direct(const DotBlock& b) {
  if (b.n_tokens == 1) {
    for (int64_t row = 0; row < b.n_rows; row += 8) direct_tile<V, 8, 1, W, X>(b, row, 0);
    return;
  }
  for (int64_t row = 0; row < b.n_rows; row += 4) {
    token_tiles<V>(b.n_tokens, [&](auto n, int64_t token) {
      direct_tile<V, 4, decltype(n)::kValue, W, X>(b, row, token);
    });
  }
}

// Four rows of weights as floats, kDepth columns of them.
template <class V, typename W>
[[gnu::always_inline]] inline void widen_rows(const W* const (&w)[4], int64_t n,
                                              float (&out)[4][kWideStride]) {
  unroll<4>([&](auto r) {
    int64_t k = 0;
    for (; k + V::kLanes <= n; k += V::kLanes) V::store(out[r] + k, V::load(w[r] + k));
    if (k < n) store_first<V>(out[r] + k, load_first<V>(w[r] + k, n - k), n - k);
  });
}

// At most kPanelRows rows from `row` on, and at most kTokenBlock tokens from `token` on.
template <class V, typename W, typename X>
void dot_panel(const DotBlock& b, int64_t first_row, int64_t first_token) {
  using Float = typename V::Float;
  alignas(64) float wide[4][kWideStride];
  alignas(64) Float aside[kPanelRows * kTokenBlock];  // sums of the blocks of columns so far
  const float* const wide_rows[4] = {wide[0], wide[1], wide[2], wide[3]};
  const int64_t last_row = least(first_row + kPanelRows, b.n_rows);
  const int64_t n_tokens = least(kTokenBlock, b.n_tokens - first_token);
  for (int64_t k = 0; k < b.n_in; k += kDepth) {
    const int64_t depth = least(kDepth, b.n_in - k);
    Float* next = aside;
    for (int64_t row = first_row; row < last_row; row += 4) {
      const W* w[4];
      rows_from(b.w, row, b.n_rows, k, w);
      widen_rows<V>(w, depth, wide);
      token_tiles<V>(n_tokens, [&](auto n, int64_t token) {
        constexpr int T = decltype(n)::kValue;
        const X* x[T];
        rows_from(b.x, first_token + token, b.n_tokens, k, x);
        Float sum[4 * T] = {};
        if (k > 0) unroll<4 * T>([&](auto i) { sum[i] = next[i]; });
        add_products<V, 4, T>(sum, wide_rows, x, depth);
        if (k + depth < b.n_in) {
          unroll<4 * T>([&](auto i) { next[i] = sum[i]; });
        } else {
          finish<V, 4, T>(sum, b, row, first_token + token);
        }
        next += 4 * T;
      });
    }
  }
}

template <class V>
void dot(const DotBlock& b) {
  with_type(b.w_type, [&](auto w) {
    using W = decltype(w);
    const auto run = [&](auto x) {
      using X = decltype(x);
      if (b.n_tokens <= kDirectTokens) return dot_direct<V, W, X>(b);
      for (int64_t token = 0; token < b.n_tokens; token += kTokenBlock)
        for (int64_t row = 0; row < b.n_rows; row += kPanelRows) dot_panel<V, W, X>(b, row, token);
    };
    b.x_type == Dtype::kBf16 ? run(bf16{}) : run(float{});
  });
}

constexpr int64_t kMixBytes = 32 * 1024;  // of the rows that all columns and tokens visit in turn

// Columns [c, c + C vectors), or the last n of them; rows [first, last) are added to what y holds.
template <class V, int T, int C, typename W>
[[gnu::always_inline]] inline void mix_tile(const MixBlock& b, int64_t first, int64_t last,
                                            int64_t token, int64_t c, int64_t n) {
  using Float = typename V::Float;
  float* y[T];
  const float* x[T];
  unroll<T>([&](auto t) {
    y[t] = b.y[least(token + t, b.n_tokens - 1)] + c;
    x[t] = b.x[least(token + t, b.n_tokens - 1)];
  });
  const bool whole = n == C * V::kLanes;
  Float sum[T * C] = {};
  if (first > 0) {
    unroll<T * C>([&](auto i) {
      const float* from = y[i / C] + i % C * V::kLanes;
      sum[i] = whole ? V::load(from) : load_first<V>(from, n);
    });
  }
  for (int64_t r = first; r < last; ++r) {
    const W* row = static_cast<const W*>(b.w[r]) + c;
    Float wv[C];
    unroll<C>(
        [&](auto i) { wv[i] = whole ? V::load(row + i * V::kLanes) : load_first<V>(row, n); });
    unroll<T>([&](auto t) {
      const Float xv = V::set(x[t][r]);
      unroll<C>([&](auto i) { sum[t * C + i] = V::fma(xv, wv[i], sum[t * C + i]); });
    });
  }
  unroll<T * C>([&](auto i) {
    float* to = y[i / C] + i % C * V::kLanes;
    whole ? V::store(to, sum[i]) : store_first<V>(to, sum[i], n);
  });
}

template <class V, int T, typename W>
[[gnu::always_inline]] inline void mix_columns(const MixBlock& b, int64_t first, int64_t last,
                                               int64_t token) {
  constexpr int C = V::kMixVectors;
  int64_t c = 0;
  for (; c + C * V::kLanes <= b.n_columns; c += C * V::kLanes)
    mix_tile<V, T, C, W>(b, first, last, token, c, C * V::kLanes);
  for (; c < b.n_columns; c += V::kLanes)
    mix_tile<V, T, 1, W>(b, first, last, token, c, least(V::kLanes, b.n_columns - c));
}

template <class V, typename W>
void mix_rows(const MixBlock& b) {
  const int64_t fit = kMixBytes / int64_t(sizeof(W)) / (b.n_columns + 1);
  const int64_t step = fit < 8 ? 8 : fit;
  for (int64_t first = 0; first == 0 || first < b.n_rows; first += step) {
    const int64_t last = least(first + step, b.n_rows);
    if (b.n_tokens == 1) {
      mix_columns<V, 1, W>(b, first, last, 0);
      continue;
    }
    for (int64_t token = 0; token < b.n_tokens; token += 4)
      mix_columns<V, 4, W>(b, first, last, token);
  }
}

template <class V>
void mix(const MixBlock& b) {
  with_type(b.w_type, [&](auto w) { mix_rows<V, decltype(w)>(b); });
}

}  // namespace
}  // namespace bascule::cpu
