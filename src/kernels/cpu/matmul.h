// The blocked loops of every product, written once over an instruction-set trait V (simd.h).
//
// dot: y[t][r] = Σ_k x[t][k] w[r][k], both rows contiguous in k, as checkpoints store them. A tile
// of rows × tokens keeps one vector of sums a pair: lane j adds k ≡ j (mod lanes), k ascending,
// and a fixed tree adds the lanes. That is the whole definition of a sum here; the shape of the
// tile, where weights are widened, and blocks over k (which put sums aside as whole vectors) leave
// it as it is.
//   one token     8 rows a tile, read as stored: as many chains as two FMA pipes need
//   few tokens    4 rows × tokens, read as stored
//   more          blocks of tokens and rows are widened to float once, tokens to L2, 4 rows at a
//                 time to L1, and met tile by tile; what limits then is FMA
//                 (docs/notes/cpu-matmul.md)
// mix: y[t][c] = Σ_r x[t][r] w[r][c]: lanes are columns, rows are added one after another.
#pragma once

#include "kernels/cpu/loops.h"
#include "kernels/cpu/simd.h"

namespace bascule::cpu {
namespace {

constexpr int64_t kDirectTokens = 4;  // up to here widening twice costs less than storing it
constexpr int64_t kDepth = 1024;      // columns of a block: 4 widened rows are half of L1
constexpr int64_t kTokenBlock = 48;   // tokens of a block: widened, 192 KiB of L2
constexpr int64_t kPanelRows = 128;   // rows that a widened block of tokens meets
constexpr int64_t kWideStride = kDepth + 16;  // rows 4096 bytes apart would share their sets of L1

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

// sum[r][t] += x[t] · w[r] over one vector of columns.
template <class V, int R, int T, typename W, typename X>
[[gnu::always_inline]] inline void add_vector(typename V::Float (&sum)[R * T],
                                              const W* const (&w)[R], const X* const (&x)[T],
                                              int64_t k) {
  typename V::Float xv[T];
  unroll<T>([&](auto t) { xv[t] = V::load(x[t] + k); });
  unroll<R>([&](auto r) {
    const typename V::Float wv = V::load(w[r] + k);
    unroll<T>([&](auto t) { sum[r * T + t] = V::fma(wv, xv[t], sum[r * T + t]); });
  });
}

// Copies of the first n elements of each row from column k on, with zeros after them.
template <typename T, int n_rows, int lanes>
[[gnu::always_inline]] inline void pad(const T* const (&rows)[n_rows], int64_t k, int64_t n,
                                       T (&out)[n_rows][lanes]) {
  __builtin_memset(out, 0, sizeof(out));
  unroll<n_rows>([&](auto i) { __builtin_memcpy(out[i], rows[i] + k, n * sizeof(T)); });
}
template <typename T, int n_rows, int lanes>
[[gnu::always_inline]] inline void point_to(const T (&room)[n_rows][lanes],
                                            const T* (&out)[n_rows]) {
  unroll<n_rows>([&](auto i) { out[i] = room[i]; });
}

// sum[r][t] += x[t] · w[r] over n columns, for a tile.
template <class V, int R, int T, typename W, typename X>
[[gnu::always_inline]] inline void add_products(typename V::Float (&sum)[R * T],
                                                const W* const (&w)[R], const X* const (&x)[T],
                                                int64_t n) {
  int64_t k = 0;
  if constexpr (sizeof(W) == sizeof(X) && sizeof(X) == sizeof(float)) {
    for (; k + 2 * V::kLanes <= n; k += 2 * V::kLanes) {
      add_vector<V, R, T>(sum, w, x, k);
      add_vector<V, R, T>(sum, w, x, k + V::kLanes);
    }
  }
  for (; k + V::kLanes <= n; k += V::kLanes) add_vector<V, R, T>(sum, w, x, k);
  if (k == n) return;
  W w_room[R][V::kLanes];
  X x_room[T][V::kLanes];
  pad(w, k, n - k, w_room);
  pad(x, k, n - k, x_room);
  const W* last_w[R];
  const X* last_x[T];
  point_to(w_room, last_w);
  point_to(x_room, last_x);
  add_vector<V, R, T>(sum, last_w, last_x, 0);
}

// Where a tile's products go: rows row, row + step, … and tokens from `token` on. What is past the
// last row or token repeats it, and is dropped.
struct Place {
  const DotBlock& block;
  int64_t row, step, token;
};

// Four products of one token one by one: rows that aren't neighbours, or sums that are added to y.
[[gnu::noinline]] inline void write_apart(Four sums, const Place& place, int64_t token,
                                          int64_t row) {
  const DotBlock& b = place.block;
  if (token >= b.n_tokens) return;
  for (int64_t i = 0; i < 4 && row < b.n_rows; ++i, row += place.step)
    b.y[token][row] = b.accumulate ? b.y[token][row] + sums[i] : sums[i];
}

// A tile's sums to y.
template <class V, int R, int T>
[[gnu::always_inline]] inline void finish(const typename V::Float (&sum)[R * T],
                                          const Place& place) {
  const DotBlock& b = place.block;
  const bool together = place.step == 1 && place.row + R <= b.n_rows &&
                        place.token + T <= b.n_tokens && !b.accumulate;
  unroll<R / 4>([&](auto q) __attribute__((always_inline)) {
    unroll<T>([&](auto t) __attribute__((always_inline)) {
      const Four sums = V::sum_lanes(sum[4 * q * T + t], sum[(4 * q + 1) * T + t],
                                     sum[(4 * q + 2) * T + t], sum[(4 * q + 3) * T + t]);
      const int64_t row = place.row + 4 * q * place.step, token = place.token + t;
      if (together) {
        __builtin_memcpy(b.y[token] + row, &sums, sizeof(sums));
      } else {
        write_apart(sums, place, token, row);
      }
    });
  });
}

// Pointers to n rows from `first` on, `step` apart, moved by `offset` elements; past the last they
// repeat it.
template <typename T, int n>
[[gnu::always_inline]] inline void rows_from(const void* const* rows, int64_t n_rows, int64_t first,
                                             int64_t step, int64_t offset, const T* (&out)[n]) {
  unroll<n>([&](auto i) {
    out[i] = static_cast<const T*>(rows[least(first + i * step, n_rows - 1)]) + offset;
  });
}

// Calls f(Index<T>{}, token) for tiles of kTokens, then of 2, that cover the tokens.
template <class V, typename F>
[[gnu::always_inline]] inline void token_tiles(int64_t n_tokens, F&& f) {
  int64_t token = 0;
  for (; token + V::kTokens <= n_tokens; token += V::kTokens) f(Index<V::kTokens>{}, token);
  for (; token < n_tokens; token += 2) f(Index<2>{}, token);
}

// R rows that lie n_rows / R apart: each is the next of a stream of its own through memory, long
// enough for the processor to run ahead of it. Neighbouring rows of 2 KiB, each a stream that ends
// where the next begins, came at half the speed (docs/notes/cpu-matmul.md).
template <class V, int R, int T, typename W, typename X>
[[gnu::always_inline]] inline void direct_tile(const DotBlock& b, int64_t row, int64_t step,
                                               int64_t token) {
  const W* w[R];
  const X* x[T];
  rows_from(b.w, b.n_rows, row, step, 0, w);
  rows_from(b.x, b.n_tokens, token, 1, 0, x);
  typename V::Float sum[R * T] = {};
  add_products<V, R, T>(sum, w, x, b.n_in);
  finish<V, R, T>(sum, {b, row, step, token});
}

template <class V, typename W, typename X>
void dot_direct(const DotBlock& b) {
  if (b.n_tokens == 1) {
    const int64_t step = (b.n_rows + 7) / 8;
    for (int64_t row = 0; row < step; ++row) direct_tile<V, 8, 1, W, X>(b, row, step, 0);
    return;
  }
  const int64_t step = (b.n_rows + 3) / 4;
  for (int64_t row = 0; row < step; ++row) {
    token_tiles<V>(b.n_tokens, [&](auto n, int64_t token) {
      direct_tile<V, 4, decltype(n)::kValue, W, X>(b, row, step, token);
    });
  }
}

// Columns [k, k + depth) of rows [first, first + n), as floats; past the last row they repeat it.
// Meanwhile the n rows after them are called from memory.
template <class V>
[[gnu::noinline]] void widen_rows(const void* const* rows, Dtype type, int64_t n_rows,
                                  int64_t first, int64_t n, int64_t k, int64_t depth,
                                  float (*out)[kWideStride]) {
  with_type(type, [&](auto element) {
    using T = decltype(element);
    constexpr int kLine = 64 / sizeof(T);
    for (int64_t r = 0; r < n; ++r) {
      const T* row = static_cast<const T*>(rows[least(first + r, n_rows - 1)]) + k;
      const T* next = static_cast<const T*>(rows[least(first + r + n, n_rows - 1)]) + k;
      int64_t i = 0;
      for (; i + kLine <= depth; i += kLine) {
        __builtin_prefetch(next + i);
        unroll<kLine / V::kLanes>([&](auto v) {
          V::store(out[r] + i + v * V::kLanes, V::load(row + i + v * V::kLanes));
        });
      }
      for (; i < depth; i += V::kLanes) {
        const int64_t width = least(V::kLanes, depth - i);
        store_first<V>(out[r] + i, load_first<V>(row + i, width), width);
      }
    }
  });
}

// At most kPanelRows rows from `first_row` on, and at most kTokenBlock tokens from `first_token`.
template <class V>
void dot_panel(const DotBlock& b, int64_t first_row, int64_t first_token) {
  using Float = typename V::Float;
  alignas(64) float x_wide[kTokenBlock][kWideStride], w_wide[4][kWideStride];
  alignas(64) Float aside[kPanelRows * kTokenBlock];  // sums of the blocks of columns so far
  const float* const w[4] = {w_wide[0], w_wide[1], w_wide[2], w_wide[3]};
  const int64_t last_row = least(first_row + kPanelRows, b.n_rows);
  const int64_t n_tokens = least(kTokenBlock, b.n_tokens - first_token);
  for (int64_t k = 0; k < b.n_in; k += kDepth) {
    const int64_t depth = least(kDepth, b.n_in - k);
    widen_rows<V>(b.x, b.x_type, b.n_tokens, first_token, n_tokens, k, depth, x_wide);
    Float* next = aside;
    for (int64_t row = first_row; row < last_row; row += 4) {
      widen_rows<V>(b.w, b.w_type, b.n_rows, row, 4, k, depth, w_wide);
      token_tiles<V>(n_tokens, [&](auto n, int64_t token) {
        constexpr int T = decltype(n)::kValue;
        const float* x[T];
        unroll<T>([&](auto t) { x[t] = x_wide[least(token + t, n_tokens - 1)]; });
        Float sum[4 * T] = {};
        if (k > 0) unroll<4 * T>([&](auto i) { sum[i] = next[i]; });
        add_products<V, 4, T>(sum, w, x, depth);
        if (k + depth < b.n_in) {
          unroll<4 * T>([&](auto i) { next[i] = sum[i]; });
        } else {
          finish<V, 4, T>(sum, {b, row, 1, first_token + token});
        }
        next += 4 * T;
      });
    }
  }
}

template <class V, typename W>
void dot_direct_of(const DotBlock& b) {
  b.x_type == Dtype::kBf16 ? dot_direct<V, W, bf16>(b) : dot_direct<V, W, float>(b);
}

template <class V>
void dot(const DotBlock& b) {
  const bool few = b.n_tokens <= kDirectTokens;
  if (few && b.w_type == Dtype::kBf16) return dot_direct_of<V, bf16>(b);
  if (few && b.w_type == Dtype::kF32) return dot_direct_of<V, float>(b);
  for (int64_t token = 0; token < b.n_tokens; token += kTokenBlock)
    for (int64_t row = 0; row < b.n_rows; row += kPanelRows) dot_panel<V>(b, row, token);
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
