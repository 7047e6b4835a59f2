// Products of integers, written once over an instruction set's tiles: MXFP4 weights in tiles of
// eight rows (tensor/quant/mxfp4_tiles.h) with inputs that are int8 times a float for each 32.
//
// A code is twice its value, an integer of at most 12, so a block's products sum to an exact
// integer in whatever order; then eight rows at once sum += integer · (weight scale · input scale),
// blocks in order. So every tile of tokens and cut of rows gives the same bits.
#pragma once

#include "kernels/cpu/loops.h"
#include "kernels/cpu/rowwise.h"

namespace bascule::cpu {
namespace {

// An input as products read it: codes [groups][32], then halves of scales [groups], then twelve
// times the sum of each group's codes, which undoes what unsigned tables add.
struct Int8Input {
  const int8_t* codes;
  const float* half_scales;
  const int32_t* offsets;

  [[gnu::always_inline]] Int8Input() = default;
  [[gnu::always_inline]] Int8Input(const void* row, int64_t n_groups)
      : codes(static_cast<const int8_t*>(row)),
        half_scales(reinterpret_cast<const float*>(codes + n_groups * 32)),
        offsets(reinterpret_cast<const int32_t*>(half_scales + n_groups)) {}
};

// The largest magnitude of a group as bits; NaN and infinity are above every number.
template <class V>
[[gnu::always_inline]] inline uint32_t largest_bits(const float (&group)[32]) {
  typename V::Int largest = {};
  for (int i = 0; i < 32; i += V::kLanes) {
    const typename V::Int bits = (typename V::Int)V::load(group + i) & 0x7fffffff;
    const typename V::Int greater = bits > largest;
    largest = (greater & bits) | (~greater & largest);
  }
  uint32_t result = 0;
  for (int i = 0; i < V::kLanes; ++i)
    result = uint32_t(largest[i]) > result ? uint32_t(largest[i]) : result;
  return result;
}

// One group: codes, half its scale, twelve times their sum. As round_row(Rounding::kInt8).
template <class V>
[[gnu::always_inline]] inline void quantise_group(const float (&group)[32], int8_t* codes,
                                                  float& half_scale, int32_t& offset) {
  const uint32_t bits = largest_bits<V>(group);
  float largest;
  __builtin_memcpy(&largest, &bits, sizeof(largest));
  if (bits >= 0x7f800000) {
    __builtin_memset(codes, 0, 32);
    half_scale = __builtin_nanf("");
    offset = 0;
    return;
  }
  const float reciprocal = largest == 0 ? 0 : 127 / largest;
  const float magic = 0x1.8p23f;  // adding it rounds to an integer, ties to even
  typename V::Int sums = {};
  for (int i = 0; i < 32; i += V::kLanes) {
    const typename V::Float scaled = V::load(group + i) * reciprocal;
    const typename V::Int q = __builtin_convertvector((scaled + magic) - magic, typename V::Int);
    sums += q;
    for (int k = 0; k < V::kLanes; ++k) codes[i + k] = int8_t(q[k]);
  }
  int32_t sum = 0;
  for (int k = 0; k < V::kLanes; ++k) sum += sums[k];
  half_scale = largest / 127 * 0.5f;
  offset = 12 * sum;
}

template <class V>
void quantise(const void* x, Dtype x_type, int64_t n, void* out) {
  const int64_t n_groups = (n + 31) / 32;
  auto* codes = static_cast<int8_t*>(out);
  auto* half_scales = reinterpret_cast<float*>(codes + n_groups * 32);
  auto* offsets = reinterpret_cast<int32_t*>(half_scales + n_groups);
  const int64_t size = x_type == Dtype::kF32 ? 4 : 2;
  for (int64_t g = 0; g < n_groups; ++g) {
    alignas(64) float group[32] = {};
    widen<V>(static_cast<const char*>(x) + g * 32 * size, x_type, least(32, n - g * 32), group);
    quantise_group<V>(group, codes + g * 32, half_scales[g], offsets[g]);
  }
}

// Eight rows with T tokens: T's sums of the tile's block `g`.
template <class Tiles, int T>
[[gnu::always_inline]] inline void tile_products(const TileBlock& b, const void* tile,
                                                 const void* scales, const Int8Input (&x)[T],
                                                 typename Tiles::Sums (&sums)[T]) {
  const auto* codes = static_cast<const uint8_t*>(tile);
  const auto* scale = static_cast<const uint8_t*>(scales);
  unroll<T>([&](auto t) { sums[t] = typename Tiles::Sums{}; });
  for (int64_t g = 0; g < b.n_groups; ++g, codes += 128, scale += 8) {
    __builtin_prefetch(codes + 1024);
    __builtin_prefetch(codes + 1024 + 64);
    const typename Tiles::Block block(codes, scale);
    unroll<T>([&](auto t) {
      block.add(x[t].codes + g * 32, x[t].half_scales[g], x[t].offsets[g], sums[t]);
    });
  }
}

template <class Tiles, int T>
[[gnu::always_inline]] inline void tile_rows(const TileBlock& b, int64_t tile, int64_t token) {
  Int8Input x[T];
  unroll<T>([&](auto t) { x[t] = Int8Input(b.x[least(token + t, b.n_tokens - 1)], b.n_groups); });
  typename Tiles::Sums sums[T];
  tile_products<Tiles, T>(b, static_cast<const char*>(b.codes) + tile * b.tile_bytes,
                          static_cast<const char*>(b.scales) + tile * b.scale_bytes, x, sums);
  // The rows of this tile that are asked for; y begins with the block's first.
  const int64_t first = tile * 8 - b.first_row;
  const int64_t begin = first < 0 ? 0 : first, end = least(first + 8, b.n_rows);
  unroll<T>([&](auto t) {
    if (token + t >= b.n_tokens) return;
    alignas(32) float eight[8];
    Tiles::store(eight, sums[t]);
    float* y = b.y[token + t];
    for (int64_t r = begin; r < end; ++r)
      y[r] = b.accumulate ? y[r] + eight[r - first] : eight[r - first];
  });
}

template <class Tiles>
void dot_tiles(const TileBlock& b) {
  const int64_t n_tiles = (b.first_row + b.n_rows + 7) / 8;
  for (int64_t tile = 0; tile < n_tiles; ++tile) {
    int64_t token = 0;
    for (; token + 4 <= b.n_tokens; token += 4) tile_rows<Tiles, 4>(b, tile, token);
    for (; token + 2 <= b.n_tokens; token += 2) tile_rows<Tiles, 2>(b, tile, token);
    if (token < b.n_tokens) tile_rows<Tiles, 1>(b, tile, token);
  }
}

// Tiles on a processor of which nothing is known.
struct PlainTiles {
  struct Sums {
    float rows[8] = {};
  };
  [[gnu::always_inline]] static void store(float* to, const Sums& s) {
    __builtin_memcpy(to, s.rows, sizeof(s.rows));
  }
  struct Block {
    const uint8_t* codes;
    const uint8_t* scales;

    Block(const uint8_t* codes_of_tile, const uint8_t* scales_of_tile)
        : codes(codes_of_tile), scales(scales_of_tile) {}
    [[gnu::always_inline]] void add(const int8_t* q, float half_scale, int32_t, Sums& sums) const {
      constexpr int8_t kTwice[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
      for (int r = 0; r < 8; ++r) {
        int32_t sum = 0;
        for (int j = 0; j < 4; ++j) {
          for (int c = 0; c < 4; ++c) {
            const uint8_t pair = codes[32 * j + 4 * r + c];
            sum += kTwice[pair & 15] * q[4 * j + c] + kTwice[pair >> 4] * q[16 + 4 * j + c];
          }
        }
        sums.rows[r] += float(sum) * (e8m0(scales[r]) * half_scale);
      }
    }
  };
};

// The table of an instruction set: its vectors and its tiles.
template <class V, class Tiles>
constexpr Loops loops_of() {
  return {.dot = dot<V>,
          .mix = mix<V>,
          .dot_tiles = dot_tiles<Tiles>,
          .quantise = quantise<V>,
          .swiglu = swiglu<V>,
          .softmax = softmax<V>,
          .relu_sum = relu_sum<V>,
          .add_weighted = add_weighted<V>,
          .rms_norm = rms_norm<V>,
          .layer_norm = layer_norm<V>,
          .narrow = narrow<V>,
          .widen = widen<V>};
}

}  // namespace
}  // namespace bascule::cpu
