#include "tensor/quant/mxfp4.h"

#include <bit>
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

}  // namespace bascule
