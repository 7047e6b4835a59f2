#include "tensor/quant/mxfp4_tiles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tensor/weight_matrix.h"

namespace bascule {
namespace {

// Row counts that are no multiple of a tile, columns that are none of a group.
TEST(Mxfp4Tiles, HoldTheSameWeights) {
  std::mt19937 engine(1);
  for (const int64_t n_rows : {1, 8, 13}) {
    for (const int64_t n_columns : {1, 31, 32, 75, 160}) {
      const int64_t width = row_bytes(WeightFormat::kMxfp4, n_columns);
      const int64_t n_groups = scale_bytes(WeightFormat::kMxfp4, n_columns);
      std::vector<uint8_t> codes(size_t(n_rows * width)), scales(size_t(n_rows * n_groups));
      for (uint8_t& c : codes) c = uint8_t(engine());
      for (uint8_t& s : scales) s = uint8_t(engine() % 255);
      const int64_t n_tiles = tiles_of(n_rows);
      std::vector<uint8_t> tiles(size_t(n_tiles * n_groups * 128), 0xee);
      std::vector<uint8_t> tile_scales(size_t(n_tiles * n_groups * 8), 0xee);
      tile_mxfp4(View<const uint8_t, 2>::packed(codes.data(), {n_rows, width}),
                 View<const uint8_t, 2>::packed(scales.data(), {n_rows, n_groups}), n_columns, 0,
                 n_tiles, View<uint8_t, 2>::packed(tiles.data(), {n_tiles, n_groups * 128}),
                 View<uint8_t, 2>::packed(tile_scales.data(), {n_tiles, n_groups * 8}));
      const auto rows = WeightMatrix::packed(WeightFormat::kMxfp4, codes.data(), scales.data(),
                                             n_rows, n_columns);
      const auto tiled = WeightMatrix::packed(WeightFormat::kMxfp4Tiles, tiles.data(),
                                              tile_scales.data(), n_rows, n_columns);
      EXPECT_EQ(tiled.size_bytes(), int64_t(tiles.size() + tile_scales.size()));
      for (int64_t r = 0; r < n_rows; ++r)
        for (int64_t c = 0; c < n_columns; ++c) ASSERT_EQ(tiled(r, c), rows(r, c)) << r << "," << c;
      // What is past the last row or column is zero.
      const auto whole = WeightMatrix::packed(WeightFormat::kMxfp4Tiles, tiles.data(),
                                              tile_scales.data(), n_tiles * 8, n_groups * 32);
      for (int64_t r = 0; r < n_tiles * 8; ++r)
        for (int64_t c = 0; c < n_groups * 32; ++c)
          if (r >= n_rows || c >= n_columns) {
            ASSERT_EQ(whole(r, c), 0) << r << "," << c;
          }
      if (n_rows < 13) continue;
      const WeightMatrix part = tiled.slice(6, 5);
      for (int64_t r = 0; r < 5; ++r) EXPECT_EQ(part(r, 0), rows(6 + r, 0));
      if (n_columns == 160) {
        EXPECT_EQ(tiled.columns(64, 10)(3, 9), rows(3, 73));
      }
    }
  }
}

}  // namespace
}  // namespace bascule
