#include "tensor/quant/mxfp4_tiles.h"

#include <algorithm>

#include "tensor/quant/mxfp4.h"

namespace bascule {
namespace {

constexpr uint8_t kScaleOfOne = 127;

// The codes of 32 columns of a row, one a byte; those past the last are 0.
void spread_group(const uint8_t* row, int64_t first, int64_t n_columns, uint8_t (&out)[32]) {
  const int64_t n = std::min<int64_t>(32, n_columns - first);
  for (int64_t i = 0; i < 32; ++i) out[i] = i < n ? mxfp4_code(row, first + i) : 0;
}

}  // namespace

void tile_mxfp4(View<const uint8_t, 2> codes, View<const uint8_t, 2> scales, int64_t n_columns,
                int64_t first, int64_t last, View<uint8_t, 2> tiles, View<uint8_t, 2> tile_scales) {
  const int64_t n_rows = codes.extent[0], n_groups = mxfp4_groups(n_columns);
  for (int64_t tile = first; tile < last; ++tile) {
    for (int64_t r = 0; r < kTileRows; ++r) {
      const int64_t row = tile * kTileRows + r;
      const bool is_there = row < n_rows;
      for (int64_t g = 0; g < n_groups; ++g) {
        uint8_t group[32] = {};
        if (is_there) spread_group(&codes(row, 0), g * 32, n_columns, group);
        tile_scales(tile, g * kTileRows + r) = is_there ? scales(row, g) : kScaleOfOne;
        uint8_t* to = &tiles(tile, g * kTileBlockBytes) + r * 4;
        for (int64_t j = 0; j < 4; ++j)
          for (int64_t c = 0; c < 4; ++c)
            to[32 * j + c] = uint8_t(group[4 * j + c] | group[16 + 4 * j + c] << 4);
      }
    }
  }
}

}  // namespace bascule
