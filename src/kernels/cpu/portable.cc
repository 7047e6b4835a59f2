// What every processor has: vectors of 4 floats as the compiler makes them, products and sums
// rounded apart.
#include "kernels/cpu/int8.h"

namespace bascule::cpu {
namespace {

struct Portable : Simd<4> {
  static constexpr int kTokens = 3;
  static constexpr int kMixVectors = 3;

  [[gnu::always_inline]] static Float fma(Float a, Float b, Float c) { return a * b + c; }
  [[gnu::always_inline]] static Four sum_lanes(Float a, Float b, Float c, Float d) {
    const Float t0 = {a[0], b[0], c[0], d[0]}, t1 = {a[1], b[1], c[1], d[1]};
    const Float t2 = {a[2], b[2], c[2], d[2]}, t3 = {a[3], b[3], c[3], d[3]};
    return (t0 + t2) + (t1 + t3);
  }
};

}  // namespace

const Loops kPortableLoops = loops_of<Portable, PlainTiles>();

}  // namespace bascule::cpu
