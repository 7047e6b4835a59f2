#include "tensor/quant/fp8_row.h"

namespace bascule {

void decode_fp8_rows(View<const uint8_t, 2> codes, View<const float, 1> scales,
                     View<float, 2> values) {
  for (int64_t r = 0; r < codes.extent[0]; ++r)
    for (int64_t c = 0; c < codes.extent[1]; ++c)
      values(r, c) = fp8_e4m3_value(codes(r, c)) * scales(r);
}

}  // namespace bascule
