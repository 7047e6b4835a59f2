// Small checkpoints of the family, made by the test that needs them: whole at first, then with
// whatever fault the test is about.
#pragma once

#include <gtest/gtest.h>
#include <string.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "format/safetensors.h"
#include "model/config.h"
#include "model/weights.h"
#include "support/temp_folder.h"
#include "tensor/bf16.h"

namespace bascule {

struct ToyTensor {
  Dtype dtype = Dtype::kBf16;
  std::vector<int64_t> shape;
  std::vector<char> bytes;

  // Zeros.
  static ToyTensor of(Dtype dtype, std::vector<int64_t> shape) {
    int64_t n_bytes = size_bytes(dtype);
    for (const int64_t extent : shape) n_bytes *= extent;
    return {dtype, std::move(shape), std::vector<char>(static_cast<size_t>(n_bytes))};
  }

  void set(int64_t element, float value) {
    if (dtype == Dtype::kF16) {  // only what a test puts there: zero, one and the specials
      const uint16_t bits = value == 0 ? 0 : value == 1 ? 0x3c00 : value != value ? 0x7e00 : 0x7c00;
      memcpy(bytes.data() + 2 * element, &bits, 2);
    } else {
      store(bytes.data(), dtype, element, value);
    }
  }
};

class ToyCheckpoint {
 public:
  ToyCheckpoint() { fill(); }

  // Fields of config.json as JSON text; an erased one is absent. After a change of shape: fill().
  std::map<std::string, std::string> fields = {
      {"architectures", R"(["GlmMoeDsaForCausalLM"])"},
      {"model_type", R"("glm_moe_dsa")"},
      {"vocab_size", "50"},
      {"hidden_size", "36"},
      {"num_hidden_layers", "4"},
      {"num_nextn_predict_layers", "1"},
      {"max_position_embeddings", "512"},
      {"rms_norm_eps", "1e-5"},
      {"num_attention_heads", "3"},
      {"q_lora_rank", "12"},
      {"kv_lora_rank", "10"},
      {"qk_nope_head_dim", "6"},
      {"qk_rope_head_dim", "4"},
      {"v_head_dim", "5"},
      {"rope_parameters", R"({"rope_type": "default", "rope_theta": 10000})"},
      {"index_n_heads", "2"},
      {"index_head_dim", "8"},
      {"index_topk", "5"},
      {"indexer_types", R"(["full", "shared", "full", "shared"])"},
      {"mlp_layer_types", R"(["dense", "sparse", "sparse", "sparse"])"},
      {"intermediate_size", "20"},
      {"moe_intermediate_size", "7"},
      {"n_routed_experts", "5"},
      {"num_experts_per_tok", "2"},
      {"n_shared_experts", "1"},
      {"routed_scaling_factor", "2.5"},
      {"eos_token_id", "[1]"},
  };
  std::map<std::string, ToyTensor> tensors;

  std::string config_json() const {
    std::string json = "{";
    for (const auto& [field, value] : fields)
      json += (json.size() == 1 ? "\"" : ",\n\"") + field + "\": " + value;
    return json + "}";
  }

  ModelConfig config() const {
    const auto config = parse_config(config_json(), "toy config.json");
    EXPECT_TRUE(config.ok()) << config.status().message();
    return *config;
  }

  // All tensors of the configuration, with small pseudo-random values; norms near 1.
  void fill() {
    tensors.clear();
    uint32_t state = 1;
    for (const ExpectedTensor& e : expected_tensors(config())) {
      ToyTensor t = ToyTensor::of(e.keeps_f32 ? Dtype::kF32 : Dtype::kBf16, e.shape);
      const float mean = e.shape.size() == 1 && !e.name.ends_with("bias") ? 1 : 0;
      for (int64_t i = 0; i < e.n_elements(); ++i) {
        state = state * 1664525 + 1013904223;
        t.set(i, mean + 0.2f * (static_cast<float>(state >> 8) / 0x1p24f - 0.5f));
      }
      tensors.emplace(e.name, std::move(t));
    }
  }

  // config.json and one model.safetensors.
  void write(const std::filesystem::path& folder) const {
    write_text(folder / "config.json", config_json());
    std::vector<std::string> names;
    for (const auto& [name, tensor] : tensors) names.push_back(name);
    write_file(folder / "model.safetensors", names);
  }

  // config.json, shards in order of name, and their index.
  void write_sharded(const std::filesystem::path& folder, size_t n_shards) const {
    write_text(folder / "config.json", config_json());
    std::vector<std::vector<std::string>> shards(n_shards);
    size_t i = 0;
    for (const auto& [name, tensor] : tensors)
      shards[i++ * n_shards / tensors.size()].push_back(name);
    std::string index = "{\"metadata\": {}, \"weight_map\": {";
    for (size_t s = 0; s < n_shards; ++s) {
      write_file(folder / shard_name(s, n_shards), shards[s]);
      for (const std::string& name : shards[s])
        index += (index.back() == '{' ? "\"" : ",\n\"") + name + "\": \"" +
                 shard_name(s, n_shards) + "\"";
    }
    write_text(folder / "model.safetensors.index.json", index + "}}");
  }

  static std::string shard_name(size_t shard, size_t n_shards) {
    char name[64];
    snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", shard + 1, n_shards);
    return name;
  }

  void write_file(const std::filesystem::path& path, const std::vector<std::string>& names) const {
    std::vector<TensorToWrite> list;
    for (const std::string& name : names) {
      const ToyTensor& t = tensors.at(name);
      list.push_back({name, t.dtype, t.shape, t.bytes.data()});
    }
    const Status written = write_safetensors(path, list);
    EXPECT_TRUE(written.ok()) << written.message();
  }

 private:
  static void write_text(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
};

}  // namespace bascule
