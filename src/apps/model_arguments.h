// From the command line to a model and an engine's options: what `run`, `plan` and `inspect` share.
#pragma once

#include <filesystem>

#include "base/options.h"
#include "engine/setup.h"
#include "model/load.h"
#include "model/pack.h"

namespace bascule {

// MODEL, or the demo model's folder where `model` is empty; says where it looked.
Result<std::filesystem::path> resolve_model(const std::string& model);

// True for a word that is meant as MODEL, whether it is there or not: a folder, a path that begins
// with "/", "./" or "../", or ORG/NAME. No text with a space in it is, but for an existing folder.
bool looks_like_model(const std::string& argument);

// The one positional that plan and inspect take, or none.
Result<std::filesystem::path> only_model(const CommandLine& line);

ConfigOverrides config_overrides(const Options& options);

// Puts the model's own sampling defaults under the options.
Status apply_model_defaults(const GenerationDefaults& defaults, Options& options);

// Puts weights in the layout that the options' kernels read; what a person should know of it.
Result<std::vector<std::string>> pack_for(LoadedModel& model, const EngineOptions& engine,
                                          const Options& options, WeightUse use,
                                          const PackProgress& progress);

Result<EngineOptions> engine_options(const Options& options, const ModelConfig& config);

}  // namespace bascule
