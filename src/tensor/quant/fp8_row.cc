#include "tensor/quant/fp8_row.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tensor/bf16.h"

namespace bascule {
namespace {

// The nearest of F16's values, ties to even; from 65520 on infinite.
float rounded_to_f16(float x) {
  const float a = std::fabs(x);
  if (!(a < 65520)) return std::isnan(x) ? x : std::copysign(INFINITY, x);
  const int exponent = a < 0x1p-14f ? -14 : std::ilogb(a);  // neighbours differ by 2^(n - 10)
  return std::copysign(std::ldexp(std::nearbyint(std::ldexp(a, 10 - exponent)), exponent - 10), x);
}

}  // namespace

void decode_fp8_rows(View<const uint8_t, 2> codes, View<const float, 1> scales,
                     View<float, 2> values) {
  for (int64_t r = 0; r < codes.extent[0]; ++r)
    for (int64_t c = 0; c < codes.extent[1]; ++c)
      values(r, c) = fp8_e4m3_value(codes(r, c)) * scales(r);
}

float fp8_row_scale(float largest) { return std::max(largest / kFp8Largest, 0x1p-23f); }

float rounded_to(Dtype stored, float x) {
  if (stored == Dtype::kF32) return x;
  if (stored == Dtype::kBf16) return rounded_to_bf16(x);
  BASCULE_CHECK(stored == Dtype::kF16);
  return rounded_to_f16(x);
}

void encode_fp8_rows(View<const float, 2> values, Dtype stored, View<uint8_t, 2> codes,
                     View<float, 1> scales) {
  for (int64_t r = 0; r < values.extent[0]; ++r) {
    float largest = 0;
    for (int64_t c = 0; c < values.extent[1]; ++c)
      largest = std::max(largest, std::fabs(values(r, c)));
    scales(r) = fp8_row_scale(largest);
    const float divisor = rounded_to(stored, scales(r));
    for (int64_t c = 0; c < values.extent[1]; ++c)
      codes(r, c) = fp8_e4m3_code(rounded_to(stored, values(r, c) / divisor));
  }
}

}  // namespace bascule
