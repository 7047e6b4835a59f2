// Armv8-A Advanced SIMD: 32 registers of 4 floats.
#include <arm_neon.h>

#include "kernels/cpu/rowwise.h"

namespace bascule::cpu {
namespace {

struct Neon : Simd<4> {
  static constexpr int kTokens = 6;      // 4 × 6 sums, 6 of x and one of w: 31 registers
  static constexpr int kMixVectors = 4;  // 4 × 4 sums, 4 of w and one of x

  using Simd<4>::load;
  [[gnu::always_inline]] static Float load(const f16* p) {
    uint16x4_t bits;
    __builtin_memcpy(&bits, p, sizeof(bits));
    return vcvt_f32_f16(vreinterpret_f16_u16(bits));
  }
  [[gnu::always_inline]] static Float fma(Float a, Float b, Float c) { return vfmaq_f32(c, a, b); }

  // The sums of the lanes of a, b, c and d.
  [[gnu::always_inline]] static Four sum_lanes(Float a, Float b, Float c, Float d) {
    return vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d));
  }
};

}  // namespace

const Loops kNeonLoops = loops_of<Neon>();

}  // namespace bascule::cpu
