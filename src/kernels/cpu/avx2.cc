// AVX2 with FMA and F16C: 16 registers of 8 floats.
#include <immintrin.h>

#include "kernels/cpu/tiles_x86.h"

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
  [[gnu::always_inline]] static void read_e4m3(const uint8_t* codes, float scale, Float (&out)[4]) {
    if (is_odd_e4m3(codes, scale)) [[unlikely]]
      return read_odd_e4m3(codes, scale, out);
    const Float factor = set(scale * 0x1p120f);
    unroll<4>([&](auto v) __attribute__((always_inline)) {
      const __m256i wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i_u*)(codes + 8 * v)));
      const __m256i bits =
          _mm256_and_si256(_mm256_slli_epi32(wide, 20), _mm256_set1_epi32(int(0x87f00000)));
      out[v] = _mm256_castsi256_ps(bits) * factor;
    });
  }
  [[gnu::noinline]] static void read_odd_e4m3(const uint8_t* codes, float scale, Float (&out)[4]) {
    Simd<8>::read_e4m3(codes, scale, out);
  }
  // The upper halves of the floats by two tables, their high and low bytes. Codes are first put
  // where the interleavings below, which work on each 128 bits, leave the columns in order.
  [[gnu::always_inline]] static void read_e2m1(const uint8_t* codes, float scale, Float (&out)[4]) {
    const __m256i packed = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i*)codes));
    const __m256i pairs = _mm256_shuffle_epi8(
        packed, _mm256_setr_epi8(0, 0, 1, 1, 4, 4, 5, 5, 8, 8, 9, 9, 12, 12, 13, 13, 2, 2, 3, 3, 6,
                                 6, 7, 7, 10, 10, 11, 11, 14, 14, 15, 15));
    const __m256i even = _mm256_and_si256(pairs, _mm256_set1_epi16(0x000f));
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi16(pairs, 4), _mm256_set1_epi16(0x0f00));
    const __m256i index = _mm256_or_si256(even, odd);
    const __m256i high_table = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 0x3f, 0x3f, 0x3f, 0x40, 0x40, 0x40, 0x40, char(0x80), char(0xbf),
                      char(0xbf), char(0xbf), char(0xc0), char(0xc0), char(0xc0), char(0xc0)));
    const __m256i low_table = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 0, char(0x80), char(0xc0), 0, 0x40, char(0x80), char(0xc0), 0, 0,
                      char(0x80), char(0xc0), 0, 0x40, char(0x80), char(0xc0)));
    const __m256i high = _mm256_shuffle_epi8(high_table, index);
    const __m256i low = _mm256_shuffle_epi8(low_table, index);
    const __m256i first = _mm256_unpacklo_epi8(low, high), last = _mm256_unpackhi_epi8(low, high);
    const __m256i zero = _mm256_setzero_si256();
    const Float factor = set(scale);
    out[0] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, first)) * factor;
    out[1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, first)) * factor;
    out[2] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, last)) * factor;
    out[3] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, last)) * factor;
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

const Loops kAvx2Loops = loops_of<Avx2, X86Tiles>();

}  // namespace bascule::cpu
