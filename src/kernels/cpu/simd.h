// Vectors of floats over the compiler's own vector types: all that the loops need and that no
// instruction set does specially. Each instruction set derives from this what it does better.
//
// For files with instruction-set flags of their own: everything is in an unnamed namespace and
// inlined, so that no copy of it can be taken by the linker for the baseline.
#pragma once

#include <cstdint>
#include <utility>

#include "tensor/bf16.h"

namespace bascule::cpu {
namespace {

using Four [[gnu::vector_size(16)]] = float;

// f(0), f(1), … with indices that are constants where they are used: gcc 12 keeps an array of
// vectors in registers only if every index is one before loops are unrolled (cpu.md §4).
template <int v>
struct Index {
  static constexpr int kValue = v;
  [[gnu::always_inline]] constexpr operator int() const { return v; }  // NOLINT
};
template <typename F, int... i>
[[gnu::always_inline]] inline void unroll_over(std::integer_sequence<int, i...>, F&& f) {
  (f(Index<i>{}), ...);
}
template <int n, typename F>
[[gnu::always_inline]] inline void unroll(F&& f) {
  unroll_over(std::make_integer_sequence<int, n>{}, f);
}

// The values of all E4M3 codes.
struct E4m3Table {
  float values[256];

  constexpr E4m3Table() : values() {
    for (int code = 0; code < 256; ++code) {
      const int exponent = (code >> 3) & 15, mantissa = code & 7;
      float magnitude = exponent == 0 ? mantissa : 8 + mantissa;
      for (int e = 1; e < exponent; ++e) magnitude *= 2;
      magnitude *= 0x1p-9f;
      if ((code & 0x7f) == 0x7f) magnitude = __builtin_nanf("");
      values[code] = code < 128 ? magnitude : -magnitude;
    }
  }
};
constexpr E4m3Table kE4m3;

template <int lanes>
struct Types;  // a size that is a template's parameter is lost on gcc 12
template <>
struct Types<4> {
  using Float [[gnu::vector_size(16)]] = float;
  using Int [[gnu::vector_size(16)]] = int32_t;
  using Uint [[gnu::vector_size(16)]] = uint32_t;
  using Ushort [[gnu::vector_size(8)]] = uint16_t;
};
template <>
struct Types<8> {
  using Float [[gnu::vector_size(32)]] = float;
  using Int [[gnu::vector_size(32)]] = int32_t;
  using Uint [[gnu::vector_size(32)]] = uint32_t;
  using Ushort [[gnu::vector_size(16)]] = uint16_t;
};
template <>
struct Types<16> {
  using Float [[gnu::vector_size(64)]] = float;
  using Int [[gnu::vector_size(64)]] = int32_t;
  using Uint [[gnu::vector_size(64)]] = uint32_t;
  using Ushort [[gnu::vector_size(32)]] = uint16_t;
};

template <int lanes>
struct Simd {
  static constexpr int kLanes = lanes;
  using Float = typename Types<lanes>::Float;
  using Int = typename Types<lanes>::Int;
  using Uint = typename Types<lanes>::Uint;
  using Ushort = typename Types<lanes>::Ushort;

  [[gnu::always_inline]] static Float set(float x) { return x - Float{}; }

  [[gnu::always_inline]] static Float load(const float* p) {
    Float v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
  }
  [[gnu::always_inline]] static Float load(const bf16* p) {
    Ushort v;
    __builtin_memcpy(&v, p, sizeof(v));
    return (Float)(__builtin_convertvector(v, Uint) << 16);
  }
  [[gnu::always_inline]] static Float load(const f16* p) {
    Ushort v;
    __builtin_memcpy(&v, p, sizeof(v));
    const Uint bits = __builtin_convertvector(v, Uint);
    const Uint sign = (bits & 0x8000) << 16, magnitude = (bits & 0x7fff) << 13;
    // Scaled by 2^112 the exponents are those of a float, subnormals included; infinities and NaN
    // need theirs filled.
    const Float finite = (Float)magnitude * 0x1p112f;
    const Uint special = magnitude | 0x7f800000;
    const Uint is_special = (Uint)((Int)magnitude >= 0x0f800000);
    return (Float)(sign | (is_special & special) | (~is_special & (Uint)finite));
  }
  [[gnu::always_inline]] static void store(float* p, Float v) {
    __builtin_memcpy(p, &v, sizeof(v));
  }
  [[gnu::always_inline]] static void store(bf16* p, Float v) {
    const Ushort out = __builtin_convertvector(bf16_bits(v), Ushort);
    __builtin_memcpy(p, &out, sizeof(out));
  }
  // Rounded to nearest, ties to even; NaN stays NaN.
  [[gnu::always_inline]] static Uint bf16_bits(Float v) {
    const Uint bits = (Uint)v;
    const Uint is_nan = (Uint)((Int)(bits & 0x7fffffff) > 0x7f800000);
    const Uint rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const Uint quiet = (bits >> 16) | 0x40;
    return (is_nan & quiet) | (~is_nan & rounded);
  }

  // 32 E4M3 codes times their scale, and 32 E2M1 codes, two a byte, the even column low.
  [[gnu::always_inline]] static void read_e4m3(const uint8_t* codes, float scale,
                                               Float (&out)[32 / lanes]) {
    for (int v = 0; v < 32 / lanes; ++v)
      for (int i = 0; i < lanes; ++i) out[v][i] = kE4m3.values[codes[v * lanes + i]] * scale;
  }
  [[gnu::always_inline]] static void read_e2m1(const uint8_t* codes, float scale,
                                               Float (&out)[32 / lanes]) {
    constexpr float kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0f, -0.5, -1, -1.5, -2, -3, -4, -6};
    for (int v = 0; v < 32 / lanes; ++v) {
      for (int i = 0; i < lanes; i += 2) {
        const uint8_t pair = codes[(v * lanes + i) / 2];
        out[v][i] = kValues[pair & 15] * scale;
        out[v][i + 1] = kValues[pair >> 4] * scale;
      }
    }
  }

  // b where either is NaN.
  [[gnu::always_inline]] static Float max(Float a, Float b) {
    const Int greater = a > b;
    return (Float)((greater & (Int)a) | (~greater & (Int)b));
  }
  [[gnu::always_inline]] static Float min(Float a, Float b) {
    const Int less = a < b;
    return (Float)((less & (Int)a) | (~less & (Int)b));
  }
  [[gnu::always_inline]] static Four lower_four(Float v) {
    Four four;
    __builtin_memcpy(&four, &v, sizeof(four));
    return four;
  }
};

// The first n of a vector; the other lanes are zero.
template <class V, typename T>
[[gnu::always_inline]] inline typename V::Float load_first(const T* p, int64_t n) {
  T whole[V::kLanes] = {};
  __builtin_memcpy(whole, p, n * sizeof(T));
  return V::load(whole);
}
template <class V, typename T>
[[gnu::always_inline]] inline void store_first(T* p, typename V::Float v, int64_t n) {
  T whole[V::kLanes];
  V::store(whole, v);
  __builtin_memcpy(p, whole, n * sizeof(T));
}

// eˣ, subnormal results kept, NaN stays NaN. x = k ln 2 + r with |r| ≤ ln 2 / 2; then
// e^r = 1 + r + r² q(r), q the minimax polynomial of degree 4 (error 3e-9), and 2^k in two factors,
// neither of which overflows.
template <class V>
[[gnu::always_inline]] inline typename V::Float exp(typename V::Float x) {
  using Float = typename V::Float;
  using Int = typename V::Int;
  x = V::max(V::set(-110), V::min(V::set(90), x));
  const Float magic = V::set(0x1.8p23f);  // adding it rounds to an integer
  const Float k = V::fma(x, V::set(0x1.715476p0f), magic) - magic;
  Float r = V::fma(k, V::set(-0x1.62e4p-1f), x);
  r = V::fma(k, V::set(-0x1.7f7d1cp-20f), r);
  Float q = V::set(0x1.6a2434p-10f);
  q = V::fma(q, r, V::set(0x1.1239e2p-7f));
  q = V::fma(q, r, V::set(0x1.5558f2p-5f));
  q = V::fma(q, r, V::set(0x1.555492p-3f));
  q = V::fma(q, r, V::set(0x1.fffffcp-2f));
  const Float e_r = V::fma(q, r * r, r) + 1;
  const Int power = __builtin_convertvector(k, Int), half = power >> 1;
  return e_r * (Float)((half + 127) << 23) * (Float)((power - half + 127) << 23);
}

}  // namespace
}  // namespace bascule::cpu
