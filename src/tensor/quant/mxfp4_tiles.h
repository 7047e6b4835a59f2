// MXFP4 weights in the order in which integer products read them: eight rows together, so that a
// vector of 32 bits a row holds four neighbouring columns of each, and the rows' scales are one
// load. No row needs its lanes added up, and scales are applied to eight sums at once.
//
// A block is 32 columns of a tile of eight rows: 128 bytes of codes, byte 32 j + 4 r + c holding
// row r's column 4 j + c in its low four bits and column 16 + 4 j + c in its high four, j < 4; and
// 8 scales, one a row. The blocks of a tile follow one another, tiles after them; scales lie apart.
// Rows and columns past the last have code 0 (and scale 1): they are zeros.
#pragma once

#include <cstdint>

#include "tensor/view.h"

namespace bascule {

inline constexpr int64_t kTileRows = 8, kTileBlockBytes = 128;

constexpr int64_t tiles_of(int64_t n_rows) { return (n_rows + kTileRows - 1) / kTileRows; }

// Where a weight is in its tile's codes.
struct TilePlace {
  int64_t byte;
  int shift;  // 0 or 4

  static TilePlace of(int64_t row, int64_t column) {
    const int64_t block = column / 32, i = column % 32;
    return {block * kTileBlockBytes + i % 16 / 4 * 32 + row * 4 + i % 4, i < 16 ? 0 : 4};
  }
};

// From the layout of files (mxfp4.h), codes [n_rows, …] and scales [n_rows, …] of n_columns, to
// tiles [tiles_of(n_rows), groups · 128] with scales [tiles_of(n_rows), groups · 8]. Tiles
// [first, last) alone, so that threads may share the work.
void tile_mxfp4(View<const uint8_t, 2> codes, View<const uint8_t, 2> scales, int64_t n_columns,
                int64_t first, int64_t last, View<uint8_t, 2> tiles, View<uint8_t, 2> tile_scales);

}  // namespace bascule
