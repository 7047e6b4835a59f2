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

#include <type_traits>

#include "kernels/cpu/formats.h"
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

// sum[r][t] += x[t] · w[r] over the columns of one read.
template <class V, int R, int T, class W, typename X>
[[gnu::always_inline]] inline void add_step(typename V::Float (&sum)[R * T], const W (&w)[R],
                                            const X* const (&x)[T], int64_t k) {
  constexpr int n = W::template kVectors<V>;
  typename V::Float xv[T * n];
  unroll<T * n>([&](auto i) { xv[i] = V::load(x[i / n] + k + i % n * V::kLanes); });
  unroll<R>([&](auto r) {
    typename V::Float wv[n];
    w[r].template read<V>(k, wv);
    unroll<n>([&](auto v) {
      unroll<T>([&](auto t) { sum[r * T + t] = V::fma(wv[v], xv[t * n + v], sum[r * T + t]); });
    });
  });
}

// sum[r][t] += x[t] · w[r] over n columns, for a tile.
template <class V, int R, int T, class W, typename X>
[[gnu::always_inline]] inline void add_products(typename V::Float (&sum)[R * T], const W (&w)[R],
                                                const X* const (&x)[T], int64_t n) {
  constexpr int64_t kStep = W::template kVectors<V> * V::kLanes;
  int64_t k = 0;
  if constexpr (std::is_same_v<W, PlainRow<float>> && std::is_same_v<X, float>) {
    for (; k + 2 * kStep <= n; k += 2 * kStep) {
      add_step<V, R, T>(sum, w, x, k);
      add_step<V, R, T>(sum, w, x, k + kStep);
    }
  }
  for (; k + kStep <= n; k += kStep) add_step<V, R, T>(sum, w, x, k);
  if (k == n) return;
  Room rooms[R];
  W last_w[R];
  X x_room[T][kStep];
  const X* last_x[T];
  __builtin_memset(x_room, 0, sizeof(x_room));
  unroll<R>([&](auto r) { last_w[r] = w[r].cut(k, n - k, rooms[r]); });
  unroll<T>([&](auto t) {
    __builtin_memcpy(x_room[t], x[t] + k, size_t(n - k) * sizeof(X));
    last_x[t] = x_room[t];
  });
  add_step<V, R, T>(sum, last_w, last_x, 0);
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

// Pointers to n tokens from `first` on, moved by `offset` elements; past the last they repeat it.
template <typename X, int n>
[[gnu::always_inline]] inline void tokens_from(const DotBlock& b, int64_t first,
                                               const X* (&out)[n]) {
  unroll<n>([&](auto i) { out[i] = static_cast<const X*>(b.x[least(first + i, b.n_tokens - 1)]); });
}

// Readers of n rows of weights from `first` on, `step` apart; past the last they repeat it.
template <class W, int n>
[[gnu::always_inline]] inline void rows_from(const DotBlock& b, int64_t first, int64_t step,
                                             W (&out)[n]) {
  unroll<n>([&](auto i) {
    const int64_t row = least(first + i * step, b.n_rows - 1);
    out[i] = W(b.w[row], b.scales ? b.scales[row] : nullptr);
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
template <class V, int R, int T, class W, typename X>
[[gnu::always_inline]] inline void direct_tile(const DotBlock& b, int64_t row, int64_t step,
                                               int64_t token) {
  W w[R];
  const X* x[T];
  rows_from(b, row, step, w);
  tokens_from(b, token, x);
  typename V::Float sum[R * T] = {};
  add_products<V, R, T>(sum, w, x, b.n_in);
  finish<V, R, T>(sum, {b, row, step, token});
}

template <class V, class W, typename X>
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

// Rows of n columns that are widened together.
struct Rows {
  const void* const* codes;
  const void* const* scales;
  int64_t n_rows;
};

// Columns [k, k + depth) of rows [first, first + n), as floats; past the last row they repeat it.
// Meanwhile the n rows after them are called from memory.
template <class V, class W>
[[gnu::always_inline]] inline void widen_rows_of(const Rows& rows, int64_t first, int64_t n,
                                                 int64_t k, int64_t depth,
                                                 float (*out)[kWideStride]) {
  constexpr int kVectors = W::template kVectors<V>;
  constexpr int64_t kStep = kVectors * V::kLanes;
  const auto row_at = [&](int64_t r) __attribute__((always_inline)) {
    r = least(r, rows.n_rows - 1);
    return W(rows.codes[r], rows.scales ? rows.scales[r] : nullptr);
  };
  typename V::Float v[kVectors];
  for (int64_t r = 0; r < n; ++r) {
    const W row = row_at(first + r), next = row_at(first + r + n);
    int64_t i = 0;
    for (; i + kStep <= depth; i += kStep) {
      if (i % W::kLine == 0) __builtin_prefetch(next.address(k + i));
      row.template read<V>(k + i, v);
      unroll<kVectors>([&](auto j) { V::store(out[r] + i + j * V::kLanes, v[j]); });
    }
    if (i == depth) continue;
    Room room;
    row.cut(k + i, depth - i, room).template read<V>(0, v);
    unroll<kVectors>([&](auto j) {
      const int64_t at = i + j * V::kLanes;
      if (at < depth) store_first<V>(out[r] + at, v[j], least(V::kLanes, depth - at));
    });
  }
}
template <class V>
[[gnu::noinline]] void widen_rows(const Rows& rows, WeightFormat format, int64_t first, int64_t n,
                                  int64_t k, int64_t depth, float (*out)[kWideStride]) {
  with_format(format,
              [&](auto row) { widen_rows_of<V, decltype(row)>(rows, first, n, k, depth, out); });
}

// At most kPanelRows rows from `first_row` on, and at most kTokenBlock tokens from `first_token`.
template <class V>
void dot_panel(const DotBlock& b, int64_t first_row, int64_t first_token) {
  using Float = typename V::Float;
  alignas(64) float x_wide[kTokenBlock][kWideStride], w_wide[4][kWideStride];
  alignas(64) Float aside[kPanelRows * kTokenBlock];  // sums of the blocks of columns so far
  const PlainRow<float> w[4] = {
      {w_wide[0], nullptr}, {w_wide[1], nullptr}, {w_wide[2], nullptr}, {w_wide[3], nullptr}};
  const WeightFormat x_format = b.x_type == Dtype::kBf16 ? WeightFormat::kBf16 : WeightFormat::kF32;
  const int64_t last_row = least(first_row + kPanelRows, b.n_rows);
  const int64_t n_tokens = least(kTokenBlock, b.n_tokens - first_token);
  for (int64_t k = 0; k < b.n_in; k += kDepth) {
    const int64_t depth = least(kDepth, b.n_in - k);
    widen_rows<V>({b.x, nullptr, b.n_tokens}, x_format, first_token, n_tokens, k, depth, x_wide);
    Float* next = aside;
    for (int64_t row = first_row; row < last_row; row += 4) {
      widen_rows<V>({b.w, b.scales, b.n_rows}, b.format, row, 4, k, depth, w_wide);
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

template <class V, class W>
void dot_direct_of(const DotBlock& b) {
  b.x_type == Dtype::kBf16 ? dot_direct<V, W, bf16>(b) : dot_direct<V, W, float>(b);
}

template <class V>
void dot(const DotBlock& b) {
  // F16 is rare: no code of its own.
  if (b.n_tokens <= kDirectTokens && b.format != WeightFormat::kF16) {
    with_format(b.format, [&](auto row) {
      if constexpr (!std::is_same_v<decltype(row), PlainRow<f16>>) {
        dot_direct_of<V, decltype(row)>(b);
      }
    });
    return;
  }
  for (int64_t token = 0; token < b.n_tokens; token += kTokenBlock)
    for (int64_t row = 0; row < b.n_rows; row += kPanelRows) dot_panel<V>(b, row, token);
}

constexpr int64_t kMixBytes = 32 * 1024;  // of the rows that all columns and tokens visit in turn

// Columns [c, c + C vectors), or the last n of them; rows [first, last) are added to what y holds.
template <class V, int T, int C, class W>
[[gnu::always_inline]] inline void mix_tile(const MixBlock& b, int64_t first, int64_t last,
                                            int64_t token, int64_t c, int64_t n) {
  using Float = typename V::Float;
  constexpr int kVectors = W::template kVectors<V>;
  static_assert(C % kVectors == 0);
  float* y[T];
  const float* x[T];
  unroll<T>([&](auto t) {
    y[t] = b.y[least(token + t, b.n_tokens - 1)] + c;
    x[t] = b.x[least(token + t, b.n_tokens - 1)];
  });
  const bool whole = n == C * V::kLanes;
  // f(vector of the tile, its place in y, how many of its columns there are)
  const auto each_sum = [&](auto&& f) __attribute__((always_inline)) {
    unroll<T * C>([&](auto i) __attribute__((always_inline)) {
      const int64_t at = i % C * V::kLanes;
      if (at < n) f(i, y[i / C] + at, least(V::kLanes, n - at));
    });
  };
  Float sum[T * C] = {};
  if (first > 0)
    each_sum([&](auto i, const float* from, int64_t width) __attribute__((always_inline)) {
      sum[i] = whole ? V::load(from) : load_first<V>(from, width);
    });
  for (int64_t r = first; r < last; ++r) {
    const W row(b.w[r], b.scales ? b.scales[r] : nullptr);
    Float wv[C];
    if (whole) {
      unroll<C / kVectors>([&](auto i) __attribute__((always_inline)) {
        Float v[kVectors];
        row.template read<V>(c + i * kVectors * V::kLanes, v);
        unroll<kVectors>([&](auto j) { wv[i * kVectors + j] = v[j]; });
      });
    } else {
      Room room;
      Float v[kVectors];
      row.cut(c, n, room).template read<V>(0, v);
      unroll<kVectors>([&](auto j) { wv[j] = v[j]; });
    }
    unroll<T>([&](auto t) {
      const Float xv = V::set(x[t][r]);
      unroll<C>([&](auto i) { sum[t * C + i] = V::fma(xv, wv[i], sum[t * C + i]); });
    });
  }
  each_sum([&](auto i, float* to, int64_t width) __attribute__((always_inline)) {
    whole ? V::store(to, sum[i]) : store_first<V>(to, sum[i], width);
  });
}

template <class V, int T, class W>
[[gnu::always_inline]] inline void mix_columns(const MixBlock& b, int64_t first, int64_t last,
                                               int64_t token) {
  constexpr int kVectors = W::template kVectors<V>;
  constexpr int C = kVectors > 1 ? kVectors : V::kMixVectors;
  int64_t c = 0;
  for (; c + C * V::kLanes <= b.n_columns; c += C * V::kLanes)
    mix_tile<V, T, C, W>(b, first, last, token, c, C * V::kLanes);
  for (; c < b.n_columns; c += kVectors * V::kLanes)
    mix_tile<V, T, kVectors, W>(b, first, last, token, c,
                                least(kVectors * V::kLanes, b.n_columns - c));
}

template <class V, class W>
void mix_rows(const MixBlock& b) {
  const int64_t fit = kMixBytes / (b.n_columns * 64 / W::kLine + 1);
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
  with_format(b.format, [&](auto row) { mix_rows<V, decltype(row)>(b); });
}

}  // namespace
}  // namespace bascule::cpu
