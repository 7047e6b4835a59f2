// The list of families.
#include <fmt/format.h>

#include "model/glm.h"
#include "model/model.h"

namespace bascule {

Result<std::unique_ptr<PlannedModel>> plan_model(const ModelConfig& config,
                                                 const ModelWeights& weights,
                                                 const Placement& placement,
                                                 const ModelOptions& options, Plan& plan) {
  if (config.model_type == "glm_moe_dsa" || config.model_type == "deepseek_v32")
    return plan_glm(config, weights, placement, options, plan);
  return unsupported(fmt::format("model_type {}: this program runs glm_moe_dsa and deepseek_v32",
                                 config.model_type));
}

}  // namespace bascule
