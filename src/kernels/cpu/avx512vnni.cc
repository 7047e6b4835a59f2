// Tiles for processors with AVX-512 VNNI, whose one instruction adds four products of bytes to 32
// bits. The sums are the same integers as in tiles_x86.h, so the bits of y are too.
#include <immintrin.h>

#include "kernels/cpu/tiles_x86.h"

namespace bascule::cpu {
namespace {

struct VnniTiles : X86Tiles {
  struct Block : X86Tiles::Block {
    using X86Tiles::Block::Block;

    [[gnu::always_inline]] void add(const int8_t* q, float half_scale, int32_t offset,
                                    Sums& sums) const {
      __m256i even = _mm256_set1_epi32(-offset), odd = _mm256_setzero_si256();
      unroll<4>([&](auto j) __attribute__((always_inline)) {
        even = _mm256_dpbusd_epi32(even, w[2 * j], four(q + 8 * j));
        odd = _mm256_dpbusd_epi32(odd, w[2 * j + 1], four(q + 8 * j + 4));
      });
      sums = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(even, odd)),
                             _mm256_mul_ps(scale, _mm256_set1_ps(half_scale)), sums);
    }
  };
};

}  // namespace

void dot_tiles_avx512vnni(const TileBlock& b) { dot_tiles<VnniTiles>(b); }

}  // namespace bascule::cpu
