#include "model/stored_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <optional>

#include "base/quote.h"
#include "tensor/quant/fp8_block.h"
#include "tensor/quant/mxfp4.h"

namespace bascule {
namespace {

using Shape = std::vector<int64_t>;

StoredFormat wrong_type(std::string reason) {
  return {.fault = "wrong type", .reason = std::move(reason)};
}
StoredFormat wrong_shape(const Shape& expected) {
  return {.fault = "wrong shape",
          .reason = fmt::format("[{}] expected", fmt::join(expected, ", "))};
}

bool is_row_scale(const StoredTensor& scale, int64_t n_out) {
  return (scale.dtype == Dtype::kF32 || scale.dtype == Dtype::kBf16) &&
         (scale.shape == Shape{n_out} || scale.shape == Shape{n_out, 1});
}

StoredFormat fp8_format(const Checkpoint& checkpoint, const StoredTensor& weight,
                        const Shape& shape) {
  const StoredTensor* blocks = checkpoint.find(weight.name + "_scale_inv");
  const StoredTensor* rows = checkpoint.find(weight.name + "_scale");
  if (blocks != nullptr && rows != nullptr)
    return wrong_type(
        fmt::format("{0}_scale_inv and {0}_scale are both there: which one is meant "
                    "can't be told",
                    weight.name));
  const Shape block_shape = {fp8_blocks(shape[0]), fp8_blocks(shape[1])};
  if (blocks != nullptr && blocks->dtype == Dtype::kF32 && blocks->shape == block_shape)
    return {WeightFormat::kFp8Blocks, blocks, "", ""};
  if (rows != nullptr && is_row_scale(*rows, shape[0]))
    return {WeightFormat::kFp8Rows, rows, "", ""};
  return wrong_type(fmt::format(
      "an FP8 weight comes with {0}_scale_inv, F32 [{1}], one a block of {2} x {2}, or with "
      "{0}_scale, F32 or BF16 [{3}], one a row; the checkpoint has neither",
      weight.name, fmt::join(block_shape, ", "), kFp8Block, shape[0]));
}

StoredFormat mxfp4_format(const Checkpoint& checkpoint, const StoredTensor& weight,
                          const Shape& shape) {
  const StoredTensor* scale = checkpoint.find(weight.name + "_scale");
  const Shape scale_shape = {shape[0], mxfp4_groups(shape[1])};
  const bool fits = scale != nullptr && scale->shape == scale_shape &&
                    (scale->dtype == Dtype::kU8 || scale->dtype == Dtype::kF8E8m0);
  if (fits) return {WeightFormat::kMxfp4, scale, "", ""};
  return wrong_type(fmt::format(
      "U8 weights are read as MXFP4, which comes with {}_scale, U8 [{}], one a group of {}; the "
      "checkpoint has none of that type and shape",
      weight.name, fmt::join(scale_shape, ", "), kMxfp4Group));
}

}  // namespace

StoredFormat stored_format(const Checkpoint& checkpoint, const StoredTensor& weight,
                           const Shape& shape) {
  if (is_plain_float(weight.dtype)) {
    if (weight.shape != shape) return wrong_shape(shape);
    return {plain_format(weight.dtype), nullptr, "", ""};
  }
  if (weight.dtype == Dtype::kF8E4m3) {
    if (weight.shape != shape) return wrong_shape(shape);
    return fp8_format(checkpoint, weight, shape);
  }
  if (weight.dtype == Dtype::kU8) {
    const Shape packed = {shape[0], mxfp4_bytes(shape[1])};
    StoredFormat format = mxfp4_format(checkpoint, weight, shape);
    return format.fault.empty() && weight.shape != packed ? wrong_shape(packed) : format;
  }
  return wrong_type(
      fmt::format("BF16, F16, F32, FP8 (F8_E4M3 with scales) or MXFP4 (U8 with scales) expected: "
                  "{} is not read by this version",
                  name(weight.dtype)));
}

std::string scaled_weight(const std::string& name) {
  for (const std::string_view suffix : {"_scale_inv", "_scale"})
    if (name.ends_with(std::string(".weight") + std::string(suffix)))
      return name.substr(0, name.size() - suffix.size());
  return "";
}

WeightMatrix weight_view(const StoredTensor& weight, const StoredFormat& format, int64_t n_out,
                         int64_t n_in, std::vector<std::unique_ptr<float[]>>& owned) {
  const void* scales = format.scale == nullptr ? nullptr : format.scale->data;
  if (format.format == WeightFormat::kFp8Rows && format.scale->dtype == Dtype::kBf16) {
    owned.emplace_back(new float[size_t(n_out)]);
    for (int64_t r = 0; r < n_out; ++r) owned.back()[size_t(r)] = load(scales, Dtype::kBf16, r);
    scales = owned.back().get();
  }
  return WeightMatrix::packed(format.format, weight.data, scales, n_out, n_in);
}

Status check_scales(const StoredTensor& scale) {
  const bool is_e8m0 = !is_plain_float(scale.dtype);
  for (int64_t i = 0; i < scale.n_elements(); ++i) {
    const float value = is_e8m0 ? e8m0_value(static_cast<const uint8_t*>(scale.data)[i])
                                : load(scale.data, scale.dtype, i);
    if (std::isfinite(value)) continue;
    const int64_t width = scale.shape.back();
    return invalid_argument(fmt::format(
        "tensor {}: the scale at row {}, column {} is {}: the file is damaged, or was written from "
        "weights that were; take it from its source again",
        in_quotes(scale.name), i / width, i % width, value));
  }
  return {};
}

}  // namespace bascule
