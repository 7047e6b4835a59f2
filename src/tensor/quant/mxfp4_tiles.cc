#include "tensor/quant/mxfp4_tiles.h"

#include <algorithm>
#include <cstring>

#include "tensor/quant/mxfp4.h"

namespace bascule {
namespace {

constexpr uint8_t kScaleOfOne = 127;

// A row's 16 bytes of a group, zeros where it ends early.
void read_group(const uint8_t* row, int64_t first, int64_t n_columns, uint8_t (&out)[16]) {
  const int64_t n = std::min<int64_t>(32, n_columns - first);
  std::memset(out, 0, sizeof(out));
  std::memcpy(out, row + first / 2, size_t(mxfp4_bytes(n)));
  if (n % 2 == 1) out[n / 2] &= 15;
}

// Column i beside column 16 + i.
void pair_halves(const uint8_t (&group)[16], uint8_t (&out)[16]) {
  for (int i = 0; i < 8; ++i) {
    out[2 * i] = uint8_t((group[i] & 15) | (group[8 + i] & 15) << 4);
    out[2 * i + 1] = uint8_t((group[i] >> 4) | (group[8 + i] & 0xf0));
  }
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
        uint8_t group[16] = {}, pairs[16];
        if (is_there) read_group(&codes(row, 0), g * 32, n_columns, group);
        pair_halves(group, pairs);
        tile_scales(tile, g * kTileRows + r) = is_there ? scales(row, g) : kScaleOfOne;
        uint8_t* to = &tiles(tile, g * kTileBlockBytes) + r * 4;
        for (int64_t j = 0; j < 4; ++j) std::memcpy(to + 32 * j, pairs + 4 * j, 4);
      }
    }
  }
}

}  // namespace bascule
