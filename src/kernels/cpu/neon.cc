// Armv8-A Advanced SIMD: 32 registers of 4 floats.
#include <arm_neon.h>

#include "kernels/cpu/int8.h"

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
  // Codes become halves of 2^-8 their value: exponents of half the width fit, subnormals as they
  // are. Adding 1 to the code carries into bit 14 for NaN alone, which a half needs too.
  [[gnu::always_inline]] static void read_e4m3(const uint8_t* codes, float scale, Float (&out)[8]) {
    const Float factor = set(scale * 256);
    unroll<4>([&](auto i) __attribute__((always_inline)) {
      const int16x8_t wide = vmovl_s8(vreinterpret_s8_u8(vld1_u8(codes + 8 * i)));
      const uint16x8_t bits =
          vandq_u16(vshlq_n_u16(vreinterpretq_u16_s16(wide), 7), vdupq_n_u16(0xbf80));
      const uint16x8_t nan = vandq_u16(vaddq_u16(bits, vdupq_n_u16(0x80)), vdupq_n_u16(0x4000));
      const uint16x8_t all = vorrq_u16(bits, nan);
      out[2 * i] = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(all))) * factor;
      out[2 * i + 1] = vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(all))) * factor;
    });
  }
  // The upper halves of the floats by two tables, their high and low bytes.
  [[gnu::always_inline]] static void read_e2m1(const uint8_t* codes, float scale, Float (&out)[8]) {
    constexpr uint8_t kHigh[] = {0,    0x3f, 0x3f, 0x3f, 0x40, 0x40, 0x40, 0x40,
                                 0x80, 0xbf, 0xbf, 0xbf, 0xc0, 0xc0, 0xc0, 0xc0};
    constexpr uint8_t kLow[] = {0, 0, 0x80, 0xc0, 0, 0x40, 0x80, 0xc0,
                                0, 0, 0x80, 0xc0, 0, 0x40, 0x80, 0xc0};
    const uint8x16_t packed = vld1q_u8(codes), high_table = vld1q_u8(kHigh),
                     low_table = vld1q_u8(kLow);
    const uint8x16x2_t index = vzipq_u8(vandq_u8(packed, vdupq_n_u8(15)), vshrq_n_u8(packed, 4));
    const Float factor = set(scale);
    unroll<2>([&](auto i) __attribute__((always_inline)) {
      const uint8x16x2_t bits =
          vzipq_u8(vqtbl1q_u8(low_table, index.val[i]), vqtbl1q_u8(high_table, index.val[i]));
      unroll<2>([&](auto j) __attribute__((always_inline)) {
        const uint16x8_t words = vreinterpretq_u16_u8(bits.val[j]);
        const uint32x4_t low = vshll_n_u16(vget_low_u16(words), 16);
        const uint32x4_t high = vshll_n_u16(vget_high_u16(words), 16);
        out[4 * i + 2 * j] = vreinterpretq_f32_u32(low) * factor;
        out[4 * i + 2 * j + 1] = vreinterpretq_f32_u32(high) * factor;
      });
    });
  }
  [[gnu::always_inline]] static Float fma(Float a, Float b, Float c) { return vfmaq_f32(c, a, b); }

  // The sums of the lanes of a, b, c and d.
  [[gnu::always_inline]] static Four sum_lanes(Float a, Float b, Float c, Float d) {
    return vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d));
  }
};

// Twice each value is a signed table here; eight products of at most 12 · 127 · 2 fit in 16 bits.
struct NeonTiles {
  struct Sums {
    float32x4_t rows[2] = {vdupq_n_f32(0), vdupq_n_f32(0)};
  };
  [[gnu::always_inline]] static void store(float* to, const Sums& s) {
    vst1q_f32(to, s.rows[0]);
    vst1q_f32(to + 4, s.rows[1]);
  }
  struct Block {
    int8x16_t w[2][8];  // [half of the rows][j]: columns 4 j … 4 j + 3
    float32x4_t scale[2];

    [[gnu::always_inline]] Block(const uint8_t* codes, const uint8_t* scales) {
      constexpr int8_t kTwice[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
      const int8x16_t table = vld1q_s8(kTwice);
      unroll<8>([&](auto i) __attribute__((always_inline)) {
        const uint8x16_t pairs = vld1q_u8(codes + 16 * i);
        w[i % 2][i / 2] = vqtbl1q_s8(table, vandq_u8(pairs, vdupq_n_u8(15)));
        w[i % 2][i / 2 + 4] = vqtbl1q_s8(table, vshrq_n_u8(pairs, 4));
      });
      const float eight[8] = {e8m0(scales[0]), e8m0(scales[1]), e8m0(scales[2]), e8m0(scales[3]),
                              e8m0(scales[4]), e8m0(scales[5]), e8m0(scales[6]), e8m0(scales[7])};
      scale[0] = vld1q_f32(eight);
      scale[1] = vld1q_f32(eight + 4);
    }
    [[gnu::always_inline]] void add(const int8_t* q, float half_scale, int32_t, Sums& sums) const {
      unroll<2>([&](auto half) __attribute__((always_inline)) {
        int16x8_t pairs = vdupq_n_s16(0);  // [row 0: two sums, row 1: two sums, …]
        unroll<8>([&](auto j) __attribute__((always_inline)) {
          int32_t bits;
          __builtin_memcpy(&bits, q + 4 * j, sizeof(bits));
          const int8x16_t four = vreinterpretq_s8_s32(vdupq_n_s32(bits));
          pairs = vaddq_s16(pairs, vpaddq_s16(vmull_s8(vget_low_s8(w[half][j]), vget_low_s8(four)),
                                              vmull_high_s8(w[half][j], four)));
        });
        sums.rows[half] = vfmaq_f32(sums.rows[half], vcvtq_f32_s32(vpaddlq_s16(pairs)),
                                    vmulq_n_f32(scale[half], half_scale));
      });
    }
  };
};

}  // namespace

const Loops kNeonLoops = loops_of<Neon, NeonTiles>();

}  // namespace bascule::cpu
