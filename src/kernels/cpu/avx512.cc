// AVX-512 (F, BW, VL, DQ): 32 registers of 16 floats.
#include <immintrin.h>

#include "kernels/cpu/tiles_x86.h"

namespace bascule::cpu {
namespace {

struct Avx512 : Simd<16> {
  static constexpr int kTokens = 6;      // 4 × 6 sums, 6 of x and one of w: 31 registers
  static constexpr int kMixVectors = 4;  // 4 × 4 sums, 4 of w and one of x

  using Simd<16>::load;
  using Simd<16>::store;
  [[gnu::always_inline]] static Float load(const bf16* p) {
    const __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u*)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
  }
  [[gnu::always_inline]] static Float load(const f16* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u*)p));
  }
  [[gnu::always_inline]] static void store(bf16* p, Float v) {
    _mm256_storeu_si256((__m256i_u*)p, _mm512_cvtepi32_epi16((__m512i)bf16_bits(v)));
  }
  // As a float a code's bits are 2^-120 of its value. Three kinds of codes and scales are left to a
  // table: NaN; subnormals, on which some processors' multipliers stumble (a weight in ten thousand
  // is one where the largest of many has the largest code); scales that 2^120 would make infinite.
  [[gnu::always_inline]] static bool is_odd_e4m3(const uint8_t* codes, float scale) {
    const __m256i all = _mm256_loadu_si256((const __m256i_u*)codes);
    const __m256i magnitude = _mm256_and_si256(all, _mm256_set1_epi8(0x7f));
    const __m256i small = _mm256_cmpgt_epi8(_mm256_set1_epi8(8), magnitude);
    const __m256i zero = _mm256_cmpeq_epi8(magnitude, _mm256_setzero_si256());
    const __m256i nan = _mm256_cmpeq_epi8(magnitude, _mm256_set1_epi8(0x7f));
    const __m256i odd = _mm256_or_si256(_mm256_andnot_si256(zero, small), nan);
    return _mm256_movemask_epi8(odd) != 0 || !(__builtin_fabsf(scale) < 128);
  }
  [[gnu::always_inline]] static void read_e4m3(const uint8_t* codes, float scale, Float (&out)[2]) {
    if (is_odd_e4m3(codes, scale)) [[unlikely]]
      return read_odd_e4m3(codes, scale, out);
    const Float factor = set(scale * 0x1p120f);
    unroll<2>([&](auto v) __attribute__((always_inline)) {
      const __m512i wide =
          _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i_u*)(codes + 16 * v)));
      const __m512i bits =
          _mm512_and_si512(_mm512_slli_epi32(wide, 20), _mm512_set1_epi32(int(0x87f00000)));
      out[v] = _mm512_castsi512_ps(bits) * factor;
    });
  }
  [[gnu::noinline]] static void read_odd_e4m3(const uint8_t* codes, float scale, Float (&out)[2]) {
    Simd<16>::read_e4m3(codes, scale, out);
  }
  // A byte becomes 64 bits whose halves begin with its two codes; a code is the place of its value
  // in a register of 16 floats.
  [[gnu::always_inline]] static void read_e2m1(const uint8_t* codes, float scale, Float (&out)[2]) {
    const Float values =
        _mm512_setr_ps(0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0f, -0.5, -1, -1.5, -2, -3, -4, -6);
    const Float factor = set(scale);
    const __m128i packed = _mm_loadu_si128((const __m128i*)codes);
    const __m512i first = _mm512_cvtepu8_epi64(packed);
    const __m512i last = _mm512_cvtepu8_epi64(_mm_unpackhi_epi64(packed, packed));
    out[0] = _mm512_permutexvar_ps(_mm512_or_si512(first, _mm512_slli_epi64(first, 28)), values) *
             factor;
    out[1] =
        _mm512_permutexvar_ps(_mm512_or_si512(last, _mm512_slli_epi64(last, 28)), values) * factor;
  }
  [[gnu::always_inline]] static Float fma(Float a, Float b, Float c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  [[gnu::always_inline]] static Float max(Float a, Float b) { return _mm512_max_ps(a, b); }
  [[gnu::always_inline]] static Float min(Float a, Float b) { return _mm512_min_ps(a, b); }

  // The sums of the lanes of a, b, c and d.
  [[gnu::always_inline]] static Four sum_lanes(Float a, Float b, Float c, Float d) {
    const __m256 a8 = halves(a), b8 = halves(b), c8 = halves(c), d8 = halves(d);
    const __m256 ab = _mm256_unpacklo_ps(a8, b8) + _mm256_unpackhi_ps(a8, b8);
    const __m256 cd = _mm256_unpacklo_ps(c8, d8) + _mm256_unpackhi_ps(c8, d8);
    const __m256 abcd = _mm256_shuffle_ps(ab, cd, 0x44) + _mm256_shuffle_ps(ab, cd, 0xee);
    return _mm256_castps256_ps128(abcd) + _mm256_extractf128_ps(abcd, 1);
  }
  [[gnu::always_inline]] static __m256 halves(Float v) {
    return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
           __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  }
};

}  // namespace

const Loops kAvx512Loops = loops_of<Avx512, X86Tiles>();

}  // namespace bascule::cpu
