#include "model/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "model/stored_format.h"

namespace bascule {
namespace {

Status apply(const ConfigOverrides& overrides, ModelConfig& config) {
  const auto set_eps = [](const char* option, std::optional<float> from, float& to) -> Status {
    if (!from) return {};
    if (!(*from > 0 && *from < 1))
      return invalid_argument(fmt::format("{} {}: between 0 and 1", option, *from));
    to = *from;
    return {};
  };
  BASCULE_TRY(set_eps("--latent-norm-eps", overrides.latent_norm_eps, config.latent_norm_eps));
  BASCULE_TRY(set_eps("--k-norm-eps", overrides.index_norm_eps, config.index_norm_eps));
  config.max_positions = overrides.max_positions.value_or(config.max_positions);
  return {};
}

Result<GenerationDefaults> read_defaults(const Checkpoint& checkpoint) {
  Result<std::string> text = checkpoint.read_text("generation_config.json");
  if (text.ok()) return parse_generation_config(*text, "generation_config.json");
  if (text.status().code() == Code::kNotFound) return GenerationDefaults{};
  return text.status();
}

Result<std::vector<int32_t>> end_tokens_of(const LoadedModel& model) {
  std::set<int32_t> tokens(model.config.eos_tokens.begin(), model.config.eos_tokens.end());
  for (const int32_t token : model.defaults.eos_tokens) {
    if (token < 0 || token >= model.config.vocab_size)
      return invalid_argument(
          fmt::format("generation_config.json: eos_token_id {}: this model's ids are from 0 to {}",
                      token, model.config.vocab_size - 1));
    tokens.insert(token);
  }
  return std::vector<int32_t>(tokens.begin(), tokens.end());
}

}  // namespace

Result<std::unique_ptr<LoadedModel>> load_model(const std::filesystem::path& folder,
                                                const ConfigOverrides& overrides, WeightUse use) {
  auto model = std::make_unique<LoadedModel>();
  BASCULE_TRY_ASSIGN(model->checkpoint, Checkpoint::open(folder));
  BASCULE_TRY_ASSIGN(const std::string json, model->checkpoint->read_text("config.json"));
  BASCULE_TRY_ASSIGN(model->config, parse_config(json, "config.json"));
  BASCULE_TRY(apply(overrides, model->config));
  BASCULE_TRY_ASSIGN(model->weights, load_weights(*model->checkpoint, model->config, use));
  BASCULE_TRY_ASSIGN(model->defaults, read_defaults(*model->checkpoint));
  BASCULE_TRY_ASSIGN(model->end_tokens, end_tokens_of(*model));
  model->weight_bytes = model->weights.size_bytes;
  model->notices = std::move(model->weights.notices);
  return model;
}

Status LoadedModel::read_ahead(const std::function<bool(int64_t, int64_t)>& progress) const {
  constexpr int64_t kPage = 4096, kChunk = int64_t{64} << 20;
  std::vector<const StoredTensor*> tensors;
  int64_t total = 0, done = 0, told = 0;
  for (const auto& [name, tensor] : checkpoint->tensors()) {
    if (packed_sources.contains(name) || packed_sources.contains(scaled_weight(name))) continue;
    tensors.push_back(&tensor);
    total += tensor.size_bytes;
  }
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor* a, const StoredTensor* b) {
    return std::pair(a->file, a->data) < std::pair(b->file, b->data);
  });
  for (const StoredTensor* tensor : tensors) {
    const auto* bytes = static_cast<const volatile char*>(tensor->data);
    for (int64_t at = 0; at < tensor->size_bytes; at += kPage) {
      (void)bytes[at];
      done += std::min(kPage, tensor->size_bytes - at);
      if (done - told < kChunk && done < total) continue;
      told = done;
      if (!progress(done, total)) return cancelled("reading the weights was stopped");
    }
  }
  return {};
}

}  // namespace bascule
