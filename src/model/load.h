// A model's folder, opened: configuration, weights in their mapping, defaults for sampling. Reads
// headers, not weights; whoever wants them in memory first asks for read_ahead().
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device/buffer.h"
#include "format/packed.h"
#include "model/config.h"
#include "model/weights.h"

namespace bascule {

// What the caller knows better than config.json.
struct ConfigOverrides {
  std::optional<float> latent_norm_eps;  // --latent-norm-eps
  std::optional<float> index_norm_eps;   // --k-norm-eps
  std::optional<int64_t> max_positions;
};

struct LoadedModel {
  std::unique_ptr<Checkpoint> checkpoint;  // the weights look into its mapping
  ModelConfig config;
  ModelWeights weights;
  GenerationDefaults defaults;
  std::vector<int32_t> end_tokens;  // of both configurations, ascending
  int64_t weight_bytes = 0;         // that are mapped
  std::vector<std::string> notices;

  // Weights in kernel layout (pack.h): one of the two, or none.
  std::unique_ptr<PackedFile> packed_file;
  Buffer packed_memory;
  std::set<std::string> packed_sources;  // tensors that are no longer read

  // Touches every page of the weights, in the order of the files, so that the first tokens do not
  // wait for the disk. `progress` hears (bytes done, bytes in all); false stops with kCancelled.
  Status read_ahead(const std::function<bool(int64_t, int64_t)>& progress) const;
};

// `use` as load_weights() takes it: a plan needs shapes alone.
Result<std::unique_ptr<LoadedModel>> load_model(const std::filesystem::path& folder,
                                                const ConfigOverrides& overrides = {},
                                                WeightUse use = WeightUse::kValues);

}  // namespace bascule
