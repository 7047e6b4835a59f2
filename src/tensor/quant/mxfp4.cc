#include "tensor/quant/mxfp4.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace bascule {

float e2m1_value(uint8_t code) {
  constexpr float kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const float magnitude = kMagnitudes[code & 7];
  return (code & 8) != 0 ? -magnitude : magnitude;
}

float e8m0_value(uint8_t code) {
  if (code == 255) return std::numeric_limits<float>::quiet_NaN();
  if (code == 0) return 0x1p-127f;
  return std::bit_cast<float>(uint32_t{code} << 23);
}

void decode_mxfp4(View<const uint8_t, 2> codes, View<const uint8_t, 2> scales,
                  View<float, 2> values) {
  for (int64_t r = 0; r < values.extent[0]; ++r)
    for (int64_t c = 0; c < values.extent[1]; ++c)
      values(r, c) =
          e2m1_value(mxfp4_code(&codes(r, 0), c)) * e8m0_value(scales(r, c / kMxfp4Group));
}

uint8_t mxfp4_scale(float largest, Mxfp4Scale rule) {
  constexpr uint32_t kMantissa = 0x7fffff;
  uint32_t bits = std::bit_cast<uint32_t>(largest) & 0x7fffffff;
  if (rule == Mxfp4Scale::kEven) bits += 0x200000;
  if (rule == Mxfp4Scale::kCeil) bits += kMantissa;
  // The exponent field is n + 127, and the code e + 127 = n + 125. Quark writes no code below 1.
  return uint8_t(std::max<int32_t>(1, int32_t(bits >> 23) - 2));
}

uint8_t e2m1_code(float x) {
  const float a = std::fabs(x);
  const int code = int(a > 0.25f) + int(a >= 0.75f) + int(a > 1.25f) + int(a >= 1.75f) +
                   int(a > 2.5f) + int(a >= 3.5f) + int(a > 5);
  return uint8_t(code != 0 && std::signbit(x) ? code | 8 : code);
}

void encode_mxfp4(View<const float, 2> values, Mxfp4Scale rule, View<uint8_t, 2> codes,
                  View<uint8_t, 2> scales) {
  const int64_t n_columns = values.extent[1];
  for (int64_t r = 0; r < values.extent[0]; ++r) {
    std::fill_n(&codes(r, 0), mxfp4_bytes(n_columns), uint8_t{0});
    for (int64_t begin = 0; begin < n_columns; begin += kMxfp4Group) {
      const int64_t end = std::min(begin + kMxfp4Group, n_columns);
      float largest = 0;
      for (int64_t c = begin; c < end; ++c) largest = std::max(largest, std::fabs(values(r, c)));
      const uint8_t scale = mxfp4_scale(largest, rule);
      scales(r, begin / kMxfp4Group) = scale;
      const float inverse = e8m0_value(uint8_t(254 - scale));
      for (int64_t c = begin; c < end; ++c)
        codes(r, c / 2) |= uint8_t(e2m1_code(values(r, c) * inverse) << (c % 2 * 4));
    }
  }
}

}  // namespace bascule
