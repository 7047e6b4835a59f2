#include "tensor/quant/fp8_block.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace bascule {
namespace {

constexpr int kCodes = 256;

std::array<float, kCodes> all_values() {
  std::array<float, kCodes> values{};
  for (int code = 0; code < kCodes; ++code) values[code] = fp8_e4m3_value(uint8_t(code));
  return values;
}

}  // namespace

float fp8_e4m3_value(uint8_t code) {
  const int exponent = (code >> 3) & 15, mantissa = code & 7;
  float magnitude = std::ldexp(float(8 + mantissa), exponent - 10);
  if (exponent == 0) magnitude = std::ldexp(float(mantissa), -9);
  if (exponent == 15 && mantissa == 7) magnitude = std::numeric_limits<float>::quiet_NaN();
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

void decode_fp8_blocks(View<const uint8_t, 2> codes, View<const float, 2> scales,
                       View<float, 2> values) {
  static const std::array<float, kCodes> table = all_values();
  const int64_t n_columns = codes.extent[1];
  for (int64_t r = 0; r < codes.extent[0]; ++r) {
    for (int64_t begin = 0; begin < n_columns; begin += kFp8Block) {
      const float scale = scales(r / kFp8Block, begin / kFp8Block);
      const int64_t end = std::min(begin + kFp8Block, n_columns);
      for (int64_t c = begin; c < end; ++c) values(r, c) = table[codes(r, c)] * scale;
    }
  }
}

uint8_t fp8_e4m3_code(float x) {
  const float a = std::min(std::fabs(x), kFp8Largest);
  // Neighbouring values differ by 2^(n - 3) in [2^n, 2^(n + 1)), and by 2^-9 below 2^-6.
  const int exponent = a < 0x1p-6f ? -6 : std::ilogb(a);
  const auto steps = int(std::nearbyint(std::ldexp(a, 3 - exponent)));  // up to 16
  const int code = (exponent + 6) * 8 + steps;
  return uint8_t(std::signbit(x) ? code | 0x80 : code);
}

void encode_fp8_blocks(View<const float, 2> values, View<uint8_t, 2> codes, View<float, 2> scales) {
  for (int64_t i = 0; i < scales.extent[0]; ++i)
    for (int64_t j = 0; j < scales.extent[1]; ++j) {
      const int64_t r_end = std::min((i + 1) * kFp8Block, values.extent[0]);
      const int64_t c_end = std::min((j + 1) * kFp8Block, values.extent[1]);
      float largest = 0;
      for (int64_t r = i * kFp8Block; r < r_end; ++r)
        for (int64_t c = j * kFp8Block; c < c_end; ++c)
          largest = std::max(largest, std::fabs(values(r, c)));
      const float scale = largest > 0 ? largest / kFp8Largest : 1;
      scales(i, j) = scale;
      for (int64_t r = i * kFp8Block; r < r_end; ++r)
        for (int64_t c = j * kFp8Block; c < c_end; ++c)
          codes(r, c) = fp8_e4m3_code(values(r, c) / scale);
    }
}

}  // namespace bascule
