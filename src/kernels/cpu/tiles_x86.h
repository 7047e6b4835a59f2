// Tiles of eight rows with 256-bit registers, for the files of AVX2 and AVX-512.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/int8.h"

namespace bascule::cpu {
namespace {

struct X86Tiles {
  using Sums = __m256;
  [[gnu::always_inline]] static void store(float* to, Sums s) { _mm256_store_ps(to, s); }

  // Codes as twice their value plus 12, so that they are unsigned, which maddubs wants: at most 24,
  // and four products of at most 24 · 127 · 2 fit in 16 bits.
  struct Block {
    __m256i w[8];  // [j]: columns 4 j … 4 j + 3 of the eight rows
    __m256 scale;

    [[gnu::always_inline]] Block(const uint8_t* codes, const uint8_t* scales) {
      const __m256i table = _mm256_broadcastsi128_si256(
          _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
      const __m256i low = _mm256_set1_epi8(15);
      unroll<4>([&](auto j) __attribute__((always_inline)) {
        const __m256i pairs = _mm256_loadu_si256((const __m256i_u*)(codes + 32 * j));
        w[j] = _mm256_shuffle_epi8(table, _mm256_and_si256(pairs, low));
        w[j + 4] = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(pairs, 4), low));
      });
      // Powers of two by their exponent; 0 is 2^-127 and 255 NaN: both have bit 22 set.
      const __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i_u*)scales));
      const __m256i special = _mm256_or_si256(_mm256_cmpeq_epi32(bytes, _mm256_setzero_si256()),
                                              _mm256_cmpeq_epi32(bytes, _mm256_set1_epi32(255)));
      const __m256i bits = _mm256_or_si256(
          _mm256_slli_epi32(bytes, 23), _mm256_and_si256(special, _mm256_set1_epi32(0x00400000)));
      scale = _mm256_castsi256_ps(bits);
    }

    // Four columns of the input in every lane.
    [[gnu::always_inline]] static __m256i four(const int8_t* q) {
      int32_t bits;
      __builtin_memcpy(&bits, q, sizeof(bits));
      return _mm256_set1_epi32(bits);
    }
    [[gnu::always_inline]] __m256i half(const int8_t* q, int j) const {
      const __m256i a = _mm256_add_epi16(_mm256_maddubs_epi16(w[j], four(q)),
                                         _mm256_maddubs_epi16(w[j + 1], four(q + 4)));
      const __m256i b = _mm256_add_epi16(_mm256_maddubs_epi16(w[j + 2], four(q + 8)),
                                         _mm256_maddubs_epi16(w[j + 3], four(q + 12)));
      return _mm256_madd_epi16(_mm256_add_epi16(a, b), _mm256_set1_epi16(1));
    }
    [[gnu::always_inline]] void add(const int8_t* q, float half_scale, int32_t offset,
                                    Sums& sums) const {
      const __m256i sum = _mm256_sub_epi32(_mm256_add_epi32(half(q, 0), half(q + 16, 4)),
                                           _mm256_set1_epi32(offset));
      sums = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum),
                             _mm256_mul_ps(scale, _mm256_set1_ps(half_scale)), sums);
    }
  };
};

}  // namespace
}  // namespace bascule::cpu
