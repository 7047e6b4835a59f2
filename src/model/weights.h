// The one table of tensor names and shapes, and the weights it yields. Names and shapes: the
// family's checkpoints as published (docs/model.md); stored [out, in], so that y = W x.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/checkpoint.h"
#include "model/config.h"
#include "tensor/weight_matrix.h"

namespace bascule {

// A linear layer's weight, in the format it is stored in.
struct Weight {
  WeightMatrix w;  // [n_out, n_in]
};
using Vector = Tensor<1>;

struct IndexerWeights {
  Weight wq_b;                        // [n_index_heads * d_index, q_rank]
  Weight wk;                          // [d_index, d_model]
  Vector k_norm_weight, k_norm_bias;  // [d_index]
  Weight weights_proj;                // [n_index_heads, d_model]
};

struct AttentionWeights {
  Weight q_a;        // [q_rank, d_model]
  Vector q_a_norm;   // [q_rank]
  Weight q_b;        // [n_heads * d_qk, q_rank]; a head's rows: nope, then rope
  Weight kv_a;       // [kv_rank + d_rope, d_model]
  Vector kv_a_norm;  // [kv_rank]
  Weight kv_b;       // [n_heads * (d_nope + d_v), kv_rank]; a head's rows: keys, then values
  Weight o;          // [d_model, n_heads * d_v]
};

struct MlpWeights {
  Weight gate, up;  // [d_ff, d_model]
  Weight down;      // [d_model, d_ff]
};

struct LayerWeights {
  Vector input_norm, post_attention_norm;  // [d_model]
  AttentionWeights attention;
  bool owns_indexer = false;
  IndexerWeights indexer;  // only where owns_indexer

  bool is_sparse = false;
  MlpWeights dense;                 // only where not is_sparse
  Weight router;                    // [n_experts, d_model]
  Vector router_bias;               // [n_experts], F32 from file to selection
  std::vector<MlpWeights> experts;  // [n_experts]
  MlpWeights shared;  // d_ff = n_shared_experts * d_expert; empty without shared experts
};

// The draft (MTP) layer, stored as layer n_layers.
struct DraftWeights {
  Vector embed_norm, hidden_norm;  // enorm, hnorm [d_model]
  Weight eh_proj;                  // [d_model, 2 * d_model]; embedding half first
  Vector head_norm;                // shared_head.norm [d_model]
  LayerWeights layer;
};

struct ModelWeights {
  Tensor<2> embed;  // [vocab, d_model]
  Vector norm;      // [d_model]
  Weight head;      // [vocab, d_model]; embed itself where the config ties them
  std::vector<LayerWeights> layers;
  bool has_draft = false;
  DraftWeights draft;
  std::vector<std::string> notices;  // what a person should know: tensors skipped, no draft layer

  int64_t size_bytes = 0;                                // of all that is loaded, scales among it
  std::vector<std::unique_ptr<float[]>> widened_scales;  // the other views look into the file
};

// Every linear layer by its tensor's name, in the order of the forward pass; a tensor that the
// checkpoint lacks has null codes.
struct NamedWeight {
  std::string name;
  Weight* weight = nullptr;
};
std::vector<NamedWeight> named_weights(const ModelConfig& config, ModelWeights& weights);

// What a checkpoint of this configuration must hold, in the order of the forward pass; with the
// draft layer where the configuration has one. For sizes before anything is loaded.
struct ExpectedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::string_view part;   // as TensorReport's
  bool keeps_f32 = false;  // the router's bias: 16 bits would change which experts are chosen

  int64_t n_elements() const;
};
std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

// One tensor of the checkpoint, or one that should be there, and what became of it.
struct TensorReport {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t size_bytes = 0;
  int64_t n_parameters = 0;  // weights that it holds; none in a scale
  std::string format;        // of a loaded tensor: "BF16", "FP8 128x128", "MXFP4"; scales have
                             // their weight's
  std::string file;
  std::string fate;    // "loaded", "skipped", "missing", "wrong shape", "wrong type", "unknown"
  std::string reason;  // why it was skipped, or what was expected
  std::string part;    // "embedding", "attention", "indexer", "dense", "experts", "shared experts",
                       // "router", "norms", "head", "draft"
};

struct WeightsReport {
  std::vector<TensorReport> tensors;  // in order of name
  std::vector<std::string> notices;
  int64_t n_expected = 0, n_loaded = 0, n_skipped = 0;
  int64_t n_errors = 0;
};

// Accounts for every tensor of the checkpoint from the headers alone (but a stored head that the
// configuration ties to the embedding is compared with it). Never fails for what the
// tensors are: faults are rows of the report.
WeightsReport account(const Checkpoint& checkpoint, const ModelConfig& config);

// The weights, as views into the checkpoint's mapping; fails with the first fault that account()
// finds, naming the tensor, its shape and what was expected, and how many more there are. The
// checkpoint must outlive the result. Block formats stay as they are stored. Their scales are read,
// and one that is not finite is an error; with kShapes, which is enough for a plan, they are not.
enum class WeightUse { kValues, kShapes };
Result<ModelWeights> load_weights(const Checkpoint& checkpoint, const ModelConfig& config,
                                  WeightUse use = WeightUse::kValues);

// Reads every loaded float tensor and reports the first NaN or infinity of each that has one.
// `progress` is called with (bytes done, bytes in all); returning false cancels.
Result<std::vector<std::string>> find_non_finite(
    const Checkpoint& checkpoint, const ModelConfig& config,
    const std::function<bool(int64_t, int64_t)>& progress);

}  // namespace bascule
