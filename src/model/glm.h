// The glm_moe_dsa family (GLM-5 to 5.3), and DeepSeek-V3.2, which differs by configuration.
#pragma once

#include "model/model.h"

namespace bascule {

Result<std::unique_ptr<PlannedModel>> plan_glm(const ModelConfig& config,
                                               const ModelWeights& weights,
                                               const Placement& placement,
                                               const ModelOptions& options, Plan& plan);

// Inverse frequencies of the rotation, [d_rope / 2] in float, with YaRN's interpolation (Peng et
// al. 2023) where the configuration asks for it.
std::vector<float> rope_inverse_frequencies(const ModelConfig& config);

// What YaRN multiplies cosines and sines by; 1 for GLM.
float rope_magnitude(const ModelConfig& config);

}  // namespace bascule
