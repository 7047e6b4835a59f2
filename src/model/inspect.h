// What a checkpoint is and what becomes of each of its tensors, for people and for programs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/config.h"
#include "model/weights.h"

namespace bascule {

struct InspectOptions {
  bool check_values = false;  // read every weight, look for NaN and infinity
  std::optional<float> latent_norm_eps, index_norm_eps;  // in place of the family's
};

struct Inspection {
  std::filesystem::path folder;
  ModelConfig config;
  WeightsReport weights;
  std::optional<std::vector<std::string>> non_finite;  // tensors that have any; none: not looked

  // The model would load, and no weight is NaN or infinite as far as was looked.
  bool is_sound() const { return weights.n_errors == 0 && (!non_finite || non_finite->empty()); }
};

// Fails where the folder cannot be understood at all; faults of tensors are part of the result.
// `progress` is that of find_non_finite().
Result<Inspection> inspect(const std::filesystem::path& folder, const InspectOptions& options,
                           const std::function<bool(int64_t, int64_t)>& progress);

// Tables for a terminal: like tensors of many layers and experts share a line; faults do not.
std::string inspection_text(const Inspection& inspection);

// One JSON object; "tensors" has one entry a tensor, the missing ones included.
std::string inspection_json(const Inspection& inspection);

}  // namespace bascule
