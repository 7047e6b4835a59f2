// config.json of the glm_moe_dsa family (GLM-5, 5.1, 5.2, 5.3) and of DeepSeek-V3.2, as a struct.
// Counts and widths must be in the file; keys that say *how* have defaults by model_type, and an
// explicit key wins (docs/model.md has the table). Errors name the field, what was found and what
// would do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace bascule {

// YaRN (Peng et al. 2023), as DeepSeek uses it; absent for GLM.
struct YarnScaling {
  double factor = 1;
  double original_max_positions = 0;
  double beta_fast = 32, beta_slow = 1;
  double mscale = 1, mscale_all_dim = 0;

  bool operator==(const YarnScaling&) const = default;
};

enum class ExpertScoring { kSigmoid, kSoftmax };

struct ModelConfig {
  std::string model_type;    // "glm_moe_dsa" or "deepseek_v32"
  std::string architecture;  // "GlmMoeDsaForCausalLM"

  int64_t vocab_size = 0;
  int64_t d_model = 0;         // hidden_size
  int64_t n_layers = 0;        // num_hidden_layers, without the draft layer
  int64_t n_draft_layers = 0;  // num_nextn_predict_layers: 0 or 1
  int64_t max_positions = 0;   // max_position_embeddings

  // Attention (MLA, DeepSeek-V2 2024)
  int64_t n_heads = 0;
  int64_t q_rank = 0;                       // q_lora_rank
  int64_t kv_rank = 0;                      // kv_lora_rank
  int64_t d_nope = 0, d_rope = 0, d_v = 0;  // qk_nope_head_dim, qk_rope_head_dim, v_head_dim
  int64_t d_qk() const { return d_nope + d_rope; }
  int64_t d_latent() const { return kv_rank + d_rope; }  // one cached row: latent, then rope key
  double rope_theta = 0;
  std::optional<YarnScaling> yarn;
  bool rope_interleaved = true;  // pairs (2i, 2i+1), else (i, i + d_rope/2)
  double softmax_scale() const;  // d_qk^-0.5, times YaRN's mscale squared

  // Lightning indexer (DSA, DeepSeek-V3.2 2025)
  int64_t n_index_heads = 0, d_index = 0, index_topk = 0;
  bool index_rope_interleaved = true;
  std::vector<bool>
      owns_indexer;  // [n_layers]; a layer that does not own one uses the last owner's
  bool index_share_for_draft_iteration = false;
  int64_t n_index_layers() const;  // how many of the n_layers own one

  // Feed-forward
  int64_t d_dense = 0;   // intermediate_size
  int64_t d_expert = 0;  // moe_intermediate_size
  int64_t n_experts = 0, n_active_experts = 0, n_shared_experts = 0;
  std::vector<bool> is_sparse;  // [n_layers]: mixture of experts, else dense
  int64_t n_expert_groups = 1, n_active_expert_groups = 1;
  ExpertScoring scoring = ExpertScoring::kSigmoid;
  bool normalise_expert_weights = true;  // norm_topk_prob
  double expert_scale = 1;               // routed_scaling_factor
  bool tied_head = false;                // tie_word_embeddings

  float norm_eps = 0;         // rms_norm_eps
  float latent_norm_eps = 0;  // q_a_layernorm and kv_a_layernorm
  float index_norm_eps = 0;   // k_norm, a LayerNorm

  std::vector<int32_t> eos_tokens;
  std::optional<int32_t> pad_token;

  // Keys of the file that were absent and took their family's default: "rope_interleave = true".
  std::vector<std::string> defaulted;
};

// Parses and validates. `text` is that of config.json; `where` names it in errors.
Result<ModelConfig> parse_config(std::string_view text, const std::string& where);

// Sampling defaults of generation_config.json; absent fields stay empty.
struct GenerationDefaults {
  std::optional<float> temperature, top_p, min_p, repetition_penalty;
  std::optional<int> top_k;
  std::vector<int32_t> eos_tokens;
};
Result<GenerationDefaults> parse_generation_config(std::string_view text, const std::string& where);

}  // namespace bascule
