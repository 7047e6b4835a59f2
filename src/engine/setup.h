// Everything about an engine that is decided before anything is allocated: which row runs each op,
// on which ranks, with how many bytes. `bascule plan` prints it; make_engine() then does just that.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "kernels/plan.h"
#include "model/load.h"
#include "model/memory_plan.h"
#include "model/model.h"

namespace bascule {

struct EngineOptions {
  Layout layout;
  int n_threads = 0;  // of all ranks together; 0: one for each usable processor
  KernelMode kernels = KernelMode::kAuto;
  std::string cpu_target = "auto";
  std::optional<Dtype> activations;        // F32 or BF16; absent: resolve_activations()
  std::optional<ActivationScheme> scheme;  // absent: resolve_scheme()
  std::optional<Dtype> kv_dtype;           // absent: as the activations
  int64_t max_context = 0;                 // tokens of a request; 0: the model's, if they fit
  int64_t kv_tokens = 0;  // of each group's cache; 0: what the requests can use, if it fits
  int64_t max_batch_tokens = 512;  // of each group in a step
  int64_t max_requests = 64;       // running in each group at one time
  int64_t max_queued = 4096;       // waiting, in all
  // Rows of each group in a step whose logits are computed; 0: a few more than the requests need,
  // so that a watched prompt (`run --dump`) runs in pieces of 64.
  int64_t max_logit_rows = 0;
  std::optional<int64_t> n_valid_tokens;  // the tokenizer's; ids from there on are never drawn
  bool keeps_prefixes = true;             // pages stay for requests with the same beginning
  bool poisons_pages = false;             // given-back pages read as NaN: for tests
};

// What `--activations auto` means: F32 with reference rows, which define what is right; BF16
// otherwise, for half the traffic of caches and activations at an error twice that of the weights'
// own rounding at most (docs/numerics).
Dtype resolve_activations(std::optional<Dtype> asked, KernelMode kernels);

// And to what they are rounded: to nothing where a type was asked for or with reference rows; else
// to int8 with MXFP4 weights, whose error is below that of BF16 (docs/numerics).
ActivationScheme resolve_scheme(const EngineOptions& options);

struct EngineSetup {
  EngineOptions options;  // with every "auto" resolved
  Machine machine;
  std::vector<Plan> plans;                           // [world]
  std::vector<std::unique_ptr<PlannedModel>> ranks;  // [world]
  int64_t scratch_bytes = 0;                         // of each worker, whatever its rank
  int64_t shared_bytes = 0;                          // of each rank's workers together
  MemoryPlan memory;
};

// The model must outlive the result.
Result<EngineSetup> plan_engine(const LoadedModel& model, const EngineOptions& options);

// Takes the memory and binds the ranks to it. Both must outlive the engine.
Result<std::unique_ptr<Engine>> make_engine(const LoadedModel& model, const EngineSetup& setup);

}  // namespace bascule
