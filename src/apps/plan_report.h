// The plan of an engine for people and for programs.
#pragma once

#include <string>

#include "base/status.h"
#include "device/peaks.h"
#include "engine/setup.h"

namespace bascule {

// Layout, bytes of every pool, and for each op of rank 0 the kernel that runs it, what it costs,
// and the least time in which a machine with these peaks can do it.
std::string plan_text(const LoadedModel& model, const EngineSetup& setup, const Peaks::Of& peak);

// The same as one JSON object; "ops" has one entry for each op and band.
std::string plan_json(const LoadedModel& model, const EngineSetup& setup, const Peaks::Of& peak);

// For the sites of one op ("matmul"), or one site ("layers.attention.q_a"): the row that was
// chosen, and why each other was refused. kNotFound lists what there is.
Result<std::string> explanation_text(const Plan& plan, const std::string& op_or_site,
                                     const Peaks::Of& peak);
Result<std::string> explanation_json(const Plan& plan, const std::string& op_or_site,
                                     const Peaks::Of& peak);

}  // namespace bascule
