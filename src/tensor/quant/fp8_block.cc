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

}  // namespace bascule
