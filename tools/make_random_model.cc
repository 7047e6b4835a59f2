// make_random_model FOLDER [--config FILE] [--seed N] [--std X] [--shard-mb N]
//                         [--experts bf16|fp8|mxfp4] [--rest bf16|fp8]
//
// Writes a checkpoint with random weights in the shape of a config.json, for work on speed and
// memory; the default is a glm_moe_dsa model of 1.04 B parameters in bf16. The same seed gives the
// same bytes. --experts and --rest choose the formats of routed and shared experts and of the other
// linear layers: FP8 in blocks of 128 x 128, MXFP4 as Quark writes it, with random codes and scales
// that give weights of the same size. Matrices are normal; norms lie near 1; the router's F32 bias
// is like a trained one's (a common level, differences far below it), so that rounding it to bf16
// would show.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"
#include "format/safetensors.h"
#include "model/config.h"
#include "model/weights.h"
#include "tensor/bf16.h"
#include "tensor/quant/fp8_block.h"
#include "tensor/quant/mxfp4.h"

namespace bascule {
namespace {

// 12 layers, the first dense; indexers on five of them by GLM-5.2's rule.
constexpr std::string_view kDefaultConfig = R"({
  "architectures": ["GlmMoeDsaForCausalLM"],
  "model_type": "glm_moe_dsa",
  "dtype": "bfloat16",
  "vocab_size": 32768,
  "hidden_size": 1024,
  "num_hidden_layers": 12,
  "max_position_embeddings": 65536,
  "rms_norm_eps": 1e-05,
  "num_attention_heads": 16,
  "num_key_value_heads": 16,
  "q_lora_rank": 768,
  "kv_lora_rank": 512,
  "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64,
  "qk_head_dim": 192,
  "v_head_dim": 128,
  "attention_bias": false,
  "rope_parameters": {"rope_theta": 8000000, "rope_type": "default"},
  "rope_interleave": true,
  "index_n_heads": 16,
  "index_head_dim": 128,
  "index_topk": 2048,
  "index_topk_freq": 4,
  "index_skip_topk_offset": 3,
  "indexer_rope_interleave": true,
  "intermediate_size": 4096,
  "moe_intermediate_size": 768,
  "n_routed_experts": 32,
  "num_experts_per_tok": 4,
  "n_shared_experts": 1,
  "first_k_dense_replace": 1,
  "moe_layer_freq": 1,
  "n_group": 1,
  "topk_group": 1,
  "scoring_func": "sigmoid",
  "topk_method": "noaux_tc",
  "norm_topk_prob": true,
  "routed_scaling_factor": 2.5,
  "hidden_act": "silu",
  "tie_word_embeddings": false,
  "eos_token_id": [1],
  "pad_token_id": 0
}
)";

// Steele, Lea and Flood 2014: a counter, mixed.
class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

// The normal distribution cut into 65,536 equally likely values, so that a weight is one look-up by
// 16 random bits.
class NormalTable {
 public:
  NormalTable() {
    double low = -6;  // quantiles rise: each search begins at the last one
    for (int i = 0; i < kSize; ++i) {
      const double p = (i + 0.5) / kSize;
      double high = 6;
      while (high - low > 1e-9) {
        const double middle = (low + high) / 2;
        (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
      }
      quantiles_.push_back(static_cast<float>(low));
    }
  }

  // mean + std times each quantile, as bf16 bits.
  std::vector<uint16_t> bf16_values(float mean, float std) const {
    std::vector<uint16_t> bits;
    for (const float q : quantiles_) bits.push_back(to_bf16(mean + std * q).bits);
    return bits;
  }
  float at(uint64_t random) const { return quantiles_[random % kSize]; }

 private:
  static constexpr int kSize = 1 << 16;
  std::vector<float> quantiles_;
};

uint64_t hash(std::string_view text) {  // FNV-1a
  uint64_t h = 0xcbf29ce484222325;
  for (const char c : text) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return h;
}

struct Options {
  std::filesystem::path folder;
  std::string config{kDefaultConfig};
  uint64_t seed = 1;
  float std = 0.02f;
  int64_t shard_bytes = int64_t{950} << 20;
  WeightFormat experts = WeightFormat::kBf16, rest = WeightFormat::kBf16;
};

// The format of a tensor, of which the file holds one of two parts.
struct PlannedTensor {
  ExpectedTensor expected;
  WeightFormat format = WeightFormat::kBf16;
  bool is_scale = false;

  TensorToWrite declaration() const {
    const auto& shape = expected.shape;
    const std::string& name = expected.name;
    if (expected.keeps_f32) return {name, Dtype::kF32, shape, nullptr};
    if (format == WeightFormat::kFp8Blocks) {
      if (!is_scale) return {name, Dtype::kF8E4m3, shape, nullptr};
      return {
          name + "_scale_inv", Dtype::kF32, {fp8_blocks(shape[0]), fp8_blocks(shape[1])}, nullptr};
    }
    if (format == WeightFormat::kMxfp4) {
      if (!is_scale) return {name, Dtype::kU8, {shape[0], mxfp4_bytes(shape[1])}, nullptr};
      return {name + "_scale", Dtype::kU8, {shape[0], mxfp4_groups(shape[1])}, nullptr};
    }
    return {name, Dtype::kBf16, shape, nullptr};
  }
  int64_t size_bytes() const {
    const TensorToWrite t = declaration();
    int64_t bytes = bascule::size_bytes(t.dtype);
    for (const int64_t extent : t.shape) bytes *= extent;
    return bytes;
  }
};

// Every tensor of the file, each weight's scales after it. As published, the embedding, the head,
// the router and the indexer's weights stay bf16.
std::vector<PlannedTensor> planned(std::vector<ExpectedTensor> tensors, const Options& options) {
  std::vector<PlannedTensor> all;
  for (ExpectedTensor& t : tensors) {
    const bool is_linear = t.shape.size() == 2 && t.part != "embedding" && t.part != "head" &&
                           t.name.find("mlp.gate.") == std::string::npos &&
                           t.name.find("weights_proj") == std::string::npos &&
                           t.name.find("eh_proj") == std::string::npos;
    const bool is_expert = t.name.find("experts.") != std::string::npos;
    const WeightFormat format = !is_linear  ? WeightFormat::kBf16
                                : is_expert ? options.experts
                                            : options.rest;
    all.push_back({t, format, false});
    if (!is_plain(format)) all.push_back({std::move(t), format, true});
  }
  return all;
}

class Generator {
 public:
  explicit Generator(const Options& options)
      : seed_(options.seed),
        std_(options.std),
        matrix_(normal_.bf16_values(0, options.std)),
        scale_(normal_.bf16_values(1, 0.05f)),
        shift_(normal_.bf16_values(0, 0.05f)) {
    for (const uint16_t bits : normal_.bf16_values(0, kFp8Deviation))
      fp8_.push_back(fp8_e4m3_code(to_float(bf16{bits})));
  }

  // Each tensor's values depend on its name and the seed alone.
  Status write(SafetensorsWriter& writer, size_t index, const PlannedTensor& planned) const {
    const ExpectedTensor& t = planned.expected;
    SplitMix random(seed_ * 0x2545f4914f6cdd1d ^ hash(planned.declaration().name));
    if (!is_plain(planned.format)) return write_block_format(writer, index, planned, random);
    if (t.keeps_f32) return write_bias(writer, index, t, random);
    const bool is_matrix = t.shape.size() == 2;
    return write_bf16(writer, index, t, random,
                      is_matrix                   ? matrix_
                      : t.name.ends_with(".bias") ? shift_
                                                  : scale_);
  }

 private:
  static Status write_bf16(SafetensorsWriter& writer, size_t index, const ExpectedTensor& t,
                           SplitMix& random, const std::vector<uint16_t>& values) {
    constexpr int64_t kPiece = 1 << 20;
    std::vector<uint16_t> piece(kPiece);
    for (int64_t left = t.n_elements(); left > 0; left -= kPiece) {
      for (size_t i = 0; i < kPiece; i += 4) {
        const uint64_t r = random.next();
        for (size_t k = 0; k < 4; ++k) piece[i + k] = values[(r >> (16 * k)) & 0xffff];
      }
      BASCULE_TRY(writer.append(index, piece.data(), std::min(left, kPiece) * 2));
    }
    return {};
  }

  // E4M3 codes of normal values whose largest of many would be 448, and any E2M1 code, which have a
  // root mean square of 2.8; scales make their values as large as those of the other matrices.
  Status write_block_format(SafetensorsWriter& writer, size_t index, const PlannedTensor& t,
                            SplitMix& random) const {
    const bool is_mxfp4 = t.format == WeightFormat::kMxfp4;
    if (t.is_scale && !is_mxfp4) {
      std::vector<float> scales(static_cast<size_t>(t.size_bytes() / 4));
      for (float& s : scales)
        s = std_ / kFp8Deviation * (0.75f + static_cast<float>(random.next() % 1024) / 2048);
      return writer.append(index, scales.data(), t.size_bytes());
    }
    const auto exponent = static_cast<uint64_t>(127 + std::ilogb(std_ / 2.8f));
    std::vector<uint8_t> piece(1 << 20);
    for (int64_t left = t.size_bytes(); left > 0; left -= int64_t(piece.size())) {
      for (size_t i = 0; i < piece.size(); i += 8) {
        uint64_t bytes = random.next();
        if (!is_mxfp4) {
          const uint64_t other = random.next();
          for (size_t k = 0; k < 8; ++k)
            piece[i + k] = fp8_[((k < 4 ? bytes : other) >> (16 * (k % 4))) & 0xffff];
          continue;
        }
        if (t.is_scale) bytes = exponent * 0x0101010101010101 + (bytes & 0x0101010101010101);
        std::copy_n(reinterpret_cast<const uint8_t*>(&bytes), 8, &piece[i]);
      }
      BASCULE_TRY(writer.append(index, piece.data(), std::min(left, int64_t(piece.size()))));
    }
    return {};
  }

  Status write_bias(SafetensorsWriter& writer, size_t index, const ExpectedTensor& t,
                    SplitMix& random) const {
    std::vector<float> bias;
    for (int64_t i = 0; i < t.n_elements(); ++i)
      bias.push_back(7.0f + 0.05f * normal_.at(random.next()));
    return writer.append(index, bias.data(), t.n_elements() * 4);
  }

  static constexpr float kFp8Deviation = 107;  // 448 is 4.2 of them

  uint64_t seed_;
  float std_;
  NormalTable normal_;
  std::vector<uint8_t> fp8_;  // as matrix_, E4M3 codes
  std::vector<uint16_t> matrix_, scale_, shift_;
};

// Tensors in order, a new shard where the next would pass the limit.
std::vector<std::vector<PlannedTensor>> shards_of(std::vector<PlannedTensor> tensors,
                                                  int64_t shard_bytes) {
  std::vector<std::vector<PlannedTensor>> shards;
  int64_t used = 0;
  for (PlannedTensor& t : tensors) {
    const int64_t bytes = t.size_bytes();
    if (shards.empty() || used + bytes > shard_bytes) {
      shards.emplace_back();
      used = 0;
    }
    used += bytes;
    shards.back().push_back(std::move(t));
  }
  return shards;
}

Status write_shard(const std::filesystem::path& path, const std::vector<PlannedTensor>& tensors,
                   const Generator& generator) {
  std::vector<TensorToWrite> declarations;
  for (const PlannedTensor& t : tensors) declarations.push_back(t.declaration());
  BASCULE_TRY_ASSIGN(SafetensorsWriter writer,
                     SafetensorsWriter::create(path, declarations, {{"format", "pt"}}));
  for (size_t i = 0; i < tensors.size(); ++i) BASCULE_TRY(generator.write(writer, i, tensors[i]));
  return writer.finish();
}

Status write_text(const std::filesystem::path& path, const std::string& text) {
  BASCULE_TRY_ASSIGN(AtomicFile file, AtomicFile::create(path));
  BASCULE_TRY(file.write_at(0, text.data(), static_cast<int64_t>(text.size())));
  return file.commit();
}

Status write_model(const Options& options) {
  BASCULE_TRY_ASSIGN(const ModelConfig config, parse_config(options.config, "configuration"));
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error)
    return internal(options.folder.string() + ": cannot be made a folder: " + error.message());

  const Generator generator(options);
  const auto shards = shards_of(planned(expected_tensors(config), options), options.shard_bytes);
  std::string weight_map;
  int64_t n_parameters = 0, total_bytes = 0;
  for (size_t s = 0; s < shards.size(); ++s) {
    const std::string file = fmt::format("model-{:05}-of-{:05}.safetensors", s + 1, shards.size());
    BASCULE_TRY(write_shard(options.folder / file, shards[s], generator));
    for (const PlannedTensor& t : shards[s]) {
      weight_map += fmt::format("{}    \"{}\": \"{}\"", weight_map.empty() ? "" : ",\n",
                                t.declaration().name, file);
      n_parameters += t.is_scale ? 0 : t.expected.n_elements();
      total_bytes += t.size_bytes();
    }
  }
  constexpr const char* kIndex =
      "{{\n  \"metadata\": {{\"total_size\": {}}},\n  \"weight_map\": {{\n{}\n  }}\n}}\n";
  BASCULE_TRY(write_text(options.folder / "model.safetensors.index.json",
                         fmt::format(kIndex, total_bytes, weight_map)));
  BASCULE_TRY(write_text(options.folder / "config.json", options.config));
  fmt::print("{}: {} parameters, {} bytes in {} files, seed {}\n", options.folder.string(),
             n_parameters, total_bytes, shards.size(), options.seed);
  return {};
}

template <typename T>
bool parse_number(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<WeightFormat> format_named(std::string_view name) {
  if (name == "bf16") return WeightFormat::kBf16;
  if (name == "fp8") return WeightFormat::kFp8Blocks;
  if (name == "mxfp4") return WeightFormat::kMxfp4;
  return {};
}

Result<Options> parse_options(int argc, char** argv) {
  const Status usage = invalid_argument(
      "usage: make_random_model FOLDER [--config FILE] [--seed N] [--std X] [--shard-mb N] "
      "[--experts bf16|fp8|mxfp4] [--rest bf16|fp8]");
  if (argc < 2 || argv[1][0] == '-' || argc % 2 != 0) return usage;
  Options options;
  options.folder = argv[1];
  for (int i = 2; i < argc; i += 2) {
    const std::string_view flag = argv[i], value = argv[i + 1];
    if (flag == "--config") {
      std::ifstream file{std::string(value)};
      if (!file) return not_found(std::string(value) + ": cannot be opened");
      options.config.assign(std::istreambuf_iterator<char>(file), {});
    } else if (flag == "--seed") {
      if (!parse_number(value, options.seed)) return usage;
    } else if (flag == "--std") {
      if (!parse_number(value, options.std) || !(options.std > 0)) return usage;
    } else if (flag == "--shard-mb") {
      int64_t mb = 0;
      if (!parse_number(value, mb) || mb < 1 || mb > 1 << 20) return usage;
      options.shard_bytes = mb << 20;
    } else if (flag == "--experts" && format_named(value)) {
      options.experts = *format_named(value);
    } else if (flag == "--rest" && format_named(value) && value != "mxfp4") {
      options.rest = *format_named(value);
    } else {
      return usage;
    }
  }
  return options;
}

Status run(int argc, char** argv) {
  BASCULE_TRY_ASSIGN(const Options options, parse_options(argc, argv));
  return write_model(options);
}

}  // namespace
}  // namespace bascule

int main(int argc, char** argv) {
  const bascule::Status status = bascule::run(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "make_random_model: %s\n", status.message().c_str());
  return 1;
}
