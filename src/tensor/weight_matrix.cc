#include "tensor/weight_matrix.h"

#include "tensor/quant/fp8_block.h"
#include "tensor/quant/mxfp4.h"
#include "tensor/quant/mxfp4_tiles.h"

namespace bascule {
namespace {

bool is_mxfp4(WeightFormat format) {
  return format == WeightFormat::kMxfp4 || format == WeightFormat::kMxfp4Tiles;
}

}  // namespace
std::string_view name(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return "F32";
    case WeightFormat::kBf16:
      return "BF16";
    case WeightFormat::kF16:
      return "F16";
    case WeightFormat::kFp8Blocks:
      return "FP8 128x128";
    case WeightFormat::kFp8Rows:
      return "FP8 rows";
    case WeightFormat::kMxfp4:
      return "MXFP4";
    case WeightFormat::kMxfp4Tiles:
      return "MXFP4 tiles";
  }
  return "unknown";
}

bool is_plain(WeightFormat format) { return format <= WeightFormat::kF16; }

WeightFormat plain_format(Dtype dtype) {
  BASCULE_CHECK(is_plain_float(dtype));
  if (dtype == Dtype::kF32) return WeightFormat::kF32;
  return dtype == Dtype::kBf16 ? WeightFormat::kBf16 : WeightFormat::kF16;
}

int64_t row_bytes(WeightFormat format, int64_t n_columns) {
  if (format == WeightFormat::kF32) return 4 * n_columns;
  if (is_plain(format)) return 2 * n_columns;
  if (format == WeightFormat::kMxfp4Tiles)
    return mxfp4_groups(n_columns) * kTileBlockBytes / kTileRows;
  return format == WeightFormat::kMxfp4 ? mxfp4_bytes(n_columns) : n_columns;
}

int64_t scale_bytes(WeightFormat format, int64_t n_columns) {
  if (is_plain(format)) return 0;
  const int64_t shared = scale_columns(format, n_columns);
  const int64_t n_scales = shared == 0 ? 0 : (n_columns + shared - 1) / shared;
  return is_mxfp4(format) ? n_scales : 4 * n_scales;
}

int64_t scale_columns(WeightFormat format, int64_t n_columns) {
  if (format == WeightFormat::kFp8Blocks) return kFp8Block;
  return is_mxfp4(format) ? kMxfp4Group : n_columns;
}

WeightMatrix::WeightMatrix(const Tensor<2>& values)
    : format(plain_format(values.dtype)),
      codes(values.data),
      n_out(values.extent[0]),
      n_in(values.extent[1]),
      row_stride(values.stride[0] * bascule::size_bytes(values.dtype)) {
  BASCULE_CHECK_EQ(values.stride[1], 1);
}

WeightMatrix WeightMatrix::packed(WeightFormat format, const void* codes, const void* scales,
                                  int64_t n_out, int64_t n_in) {
  WeightMatrix w;
  w.format = format;
  w.codes = codes;
  w.scales = scales;
  w.n_out = n_out;
  w.n_in = n_in;
  const int64_t together = format == WeightFormat::kMxfp4Tiles ? kTileRows : 1;
  w.row_stride = together * row_bytes(format, n_in);
  w.scale_stride = together * scale_bytes(format, n_in);
  return w;
}

const void* WeightMatrix::scale_row(int64_t r) const {
  if (scales == nullptr) return nullptr;
  if (format == WeightFormat::kFp8Blocks) r = (first_row + r) / kFp8Block;
  if (format == WeightFormat::kMxfp4Tiles) r = (first_row + r) / kTileRows;
  return static_cast<const char*>(scales) + r * scale_stride;
}

WeightMatrix WeightMatrix::slice(int64_t first, int64_t count) const {
  WeightMatrix w = *this;
  w.n_out = count;
  if (codes != nullptr) w.codes = row(first);
  w.scales = scale_row(first);
  if (format == WeightFormat::kFp8Blocks) w.first_row = (first_row + first) % kFp8Block;
  if (format == WeightFormat::kMxfp4Tiles) w.first_row = (first_row + first) % kTileRows;
  return w;
}

WeightMatrix WeightMatrix::columns(int64_t first, int64_t count) const {
  const int64_t shared = scale_columns(format, n_in), begin = first_column + first;
  // Rows whose first column shares a byte with another keep it, and remember.
  const int64_t kept = format == WeightFormat::kFp8Rows || is_plain(format) ? 0 : begin % shared;
  WeightMatrix w = *this;
  w.n_in = count;
  w.first_column = kept;
  const int64_t together = format == WeightFormat::kMxfp4Tiles ? kTileRows : 1;
  if (codes != nullptr)
    w.codes = static_cast<const char*>(codes) + together * row_bytes(format, begin - kept);
  if (scales != nullptr && format != WeightFormat::kFp8Rows)
    w.scales = static_cast<const char*>(scales) + together * scale_bytes(format, begin - kept);
  return w;
}

float WeightMatrix::operator()(int64_t r, int64_t c) const {
  const void* codes_of_row = row(r);
  const int64_t column = first_column + c;
  switch (format) {
    case WeightFormat::kF32:
      return static_cast<const float*>(codes_of_row)[c];
    case WeightFormat::kBf16:
      return to_float(static_cast<const bf16*>(codes_of_row)[c]);
    case WeightFormat::kF16:
      return to_float(static_cast<const f16*>(codes_of_row)[c]);
    case WeightFormat::kFp8Blocks:
      return fp8_e4m3_value(static_cast<const uint8_t*>(codes_of_row)[column]) *
             static_cast<const float*>(scale_row(r))[column / kFp8Block];
    case WeightFormat::kFp8Rows:
      return fp8_e4m3_value(static_cast<const uint8_t*>(codes_of_row)[column]) *
             static_cast<const float*>(scale_row(r))[0];
    case WeightFormat::kMxfp4:
      return e2m1_value(mxfp4_code(static_cast<const uint8_t*>(codes_of_row), column)) *
             e8m0_value(static_cast<const uint8_t*>(scale_row(r))[column / kMxfp4Group]);
    case WeightFormat::kMxfp4Tiles: {
      const int64_t lane = (first_row + r) % kTileRows;
      const TilePlace place = TilePlace::of(lane, column);
      const uint8_t code = static_cast<const uint8_t*>(codes_of_row)[place.byte] >> place.shift;
      const auto* scales_of_tile = static_cast<const uint8_t*>(scale_row(r));
      return e2m1_value(code) * e8m0_value(scales_of_tile[column / kMxfp4Group * kTileRows + lane]);
    }
  }
  check_failed(__FILE__, __LINE__, "every WeightFormat is decoded", "");
}

void WeightMatrix::decode_row(int64_t r, float* out) const {
  for (int64_t c = 0; c < n_in; ++c) out[c] = (*this)(r, c);
}

int64_t WeightMatrix::size_bytes() const {
  const int64_t scale_rows = format == WeightFormat::kFp8Blocks ? fp8_blocks(n_out) : n_out;
  if (format == WeightFormat::kMxfp4Tiles)
    return tiles_of(n_out) * kTileRows * (row_bytes(format, n_in) + scale_bytes(format, n_in));
  return n_out * row_bytes(format, n_in) + scale_rows * scale_bytes(format, n_in);
}

}  // namespace bascule
