// Golden checkpoints in block formats, made from the BF16 ones by our encoders: their bytes are
// those of the files that the golden outputs came from (docs of each: tests/golden/NAME/README.md),
// which need not lie here then.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "support/golden_model.h"
#include "support/temp_folder.h"
#include "tensor/quant/fp8_block.h"
#include "tensor/quant/fp8_row.h"
#include "tensor/quant/mxfp4.h"

namespace bascule {

// Which format the tensor of a name is stored in; kBf16 leaves it as it is.
using FormatOf = std::function<WeightFormat(const std::string& name)>;

inline bool has(const std::string& name, const char* part) {
  return name.find(part) != std::string::npos;
}
inline bool is_linear(const std::string& name) {
  return name.ends_with("_proj.weight") || name.ends_with("kv_a_proj_with_mqa.weight") ||
         name.ends_with(".wq_b.weight") || name.ends_with(".wk.weight");
}

// As the official FP8 checkpoints have it.
inline WeightFormat fp8_format_of(const std::string& name) {
  return is_linear(name) && !has(name, "weights_proj") ? WeightFormat::kFp8Blocks
                                                       : WeightFormat::kBf16;
}
// Routed and shared experts.
inline WeightFormat mxfp4_format_of(const std::string& name) {
  return has(name, "experts.") ? WeightFormat::kMxfp4 : WeightFormat::kBf16;
}
// MLPs of any kind; attention in FP8 by rows.
inline WeightFormat attnfp8_format_of(const std::string& name) {
  if (!is_linear(name) || has(name, "weights_proj")) return WeightFormat::kBf16;
  return has(name, ".self_attn.") ? WeightFormat::kFp8Rows : WeightFormat::kMxfp4;
}

// A tensor of a file to be, and its bytes.
struct Encoded {
  TensorToWrite declaration;
  std::vector<uint8_t> bytes;

  Encoded(std::string name, Dtype dtype, std::vector<int64_t> shape, int64_t n_bytes)
      : declaration{std::move(name), dtype, std::move(shape)}, bytes(size_t(n_bytes)) {}
};

// Codes, then scales.
inline std::vector<Encoded> encode(const StoredTensor& t, WeightFormat format) {
  const int64_t rows = t.shape[0], columns = t.shape[1];
  std::vector<float> values(size_t(rows * columns));
  for (size_t i = 0; i < values.size(); ++i) values[i] = load(t.data, t.dtype, int64_t(i));
  const auto v = View<const float, 2>::packed(values.data(), {rows, columns});
  const bool is_mxfp4 = format == WeightFormat::kMxfp4;
  const int64_t width = row_bytes(format, columns), n_scales = is_mxfp4 ? mxfp4_groups(columns) : 0;
  std::vector<Encoded> out;
  out.emplace_back(t.name, is_mxfp4 ? Dtype::kU8 : Dtype::kF8E4m3,
                   std::vector<int64_t>{rows, width}, rows * width);
  const auto codes = View<uint8_t, 2>::packed(out[0].bytes.data(), {rows, width});
  if (is_mxfp4) {
    out.emplace_back(t.name + "_scale", Dtype::kU8, std::vector<int64_t>{rows, n_scales},
                     rows * n_scales);
    encode_mxfp4(v, Mxfp4Scale::kEven, codes,
                 View<uint8_t, 2>::packed(out[1].bytes.data(), {rows, n_scales}));
  } else if (format == WeightFormat::kFp8Rows) {
    out.emplace_back(t.name + "_scale", Dtype::kF32, std::vector<int64_t>{rows}, rows * 4);
    encode_fp8_rows(v, t.dtype, codes,
                    View<float, 1>::packed(reinterpret_cast<float*>(out[1].bytes.data()), {rows}));
  } else {
    const int64_t r = fp8_blocks(rows), c = fp8_blocks(columns);
    out.emplace_back(t.name + "_scale_inv", Dtype::kF32, std::vector<int64_t>{r, c}, r * c * 4);
    encode_fp8_blocks(
        v, codes, View<float, 2>::packed(reinterpret_cast<float*>(out[1].bytes.data()), {r, c}));
  }
  return out;
}

// Writes the golden checkpoint `base` with every tensor in the format that it is given.
inline void write_stored(const std::string& base, const FormatOf& format_of,
                         const std::filesystem::path& config_json,
                         const std::filesystem::path& folder) {
  const auto checkpoint = Checkpoint::open(GoldenModel::folder(base)).value();
  std::vector<Encoded> encoded;
  for (const auto& [name, t] : checkpoint->tensors()) {
    if (format_of(name) != WeightFormat::kBf16) {
      for (Encoded& e : encode(t, format_of(name))) encoded.push_back(std::move(e));
      continue;
    }
    encoded.emplace_back(name, t.dtype, t.shape, t.size_bytes);
    const auto* from = static_cast<const uint8_t*>(t.data);
    encoded.back().bytes.assign(from, from + t.size_bytes);
  }
  std::vector<TensorToWrite> tensors;
  for (const Encoded& e : encoded) {
    tensors.push_back(e.declaration);
    tensors.back().data = e.bytes.data();
  }
  BASCULE_CHECK(write_safetensors(folder / "model.safetensors", tensors).ok());
  std::filesystem::copy_file(config_json, folder / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
}

// A golden checkpoint in block formats: its folder has the config and the outputs.
struct StoredGolden {
  TempFolder folder;
  GoldenModel model;

  StoredGolden(const std::string& base, const std::string& name, const FormatOf& format_of)
      : model(written(base, name, format_of, folder.path()), GoldenModel::folder(name), 1e-6f) {}

 private:
  static std::filesystem::path written(const std::string& base, const std::string& name,
                                       const FormatOf& format_of,
                                       const std::filesystem::path& folder) {
    write_stored(base, format_of, GoldenModel::folder(name) / "config.json", folder);
    return folder;
  }
};

}  // namespace bascule
