// AVX2 with FMA and F16C: 16 registers of 8 floats.
#include <immintrin.h>

#include "kernels/cpu/rowwise.h"

namespace bascule::cpu {
namespace {

struct Avx2 : Simd<8> {
  static constexpr int kTokens = 3;      // 4 × 3 sums, 3 of x and one of w: 16 registers
  static constexpr int kMixVectors = 3;  // 4 × 3 sums, 3 of w and one of x

  using Simd<8>::load;
  using Simd<8>::store;
  [[gnu::always_inline]] static Float load(const bf16* p) {
    const __m256i bits =
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
  }
  [[gnu::always_inline]] static Float load(const f16* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  [[gnu::always_inline]] static void store(bf16* p, Float v) {
    const __m256i bits = (__m256i)bf16_bits(v);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(bits, bits), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
  }
  [[gnu::always_inline]] static Float fma(Float a, Float b, Float c) {
    return _mm256_fmadd_ps(a, b, c);
  }
  [[gnu::always_inline]] static Float max(Float a, Float b) { return _mm256_max_ps(a, b); }
  [[gnu::always_inline]] static Float min(Float a, Float b) { return _mm256_min_ps(a, b); }

  // The sums of the lanes of a, b, c and d.
  [[gnu::always_inline]] static Four sum_lanes(Float a, Float b, Float c, Float d) {
    const Float ab = _mm256_unpacklo_ps(a, b) + _mm256_unpackhi_ps(a, b);  // a b a b | a b a b
    const Float cd = _mm256_unpacklo_ps(c, d) + _mm256_unpackhi_ps(c, d);
    const Float abcd = _mm256_shuffle_ps(ab, cd, 0x44) + _mm256_shuffle_ps(ab, cd, 0xee);
    return _mm256_castps256_ps128(abcd) + _mm256_extractf128_ps(abcd, 1);
  }
};

}  // namespace

const Loops kAvx2Loops = loops_of<Avx2>();

}  // namespace bascule::cpu
