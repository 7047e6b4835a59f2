// What the engine asks of a model: one forward pass over the tokens of a step. The one virtual
// class.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "base/arena.h"
#include "device/comm.h"
#include "device/stream.h"
#include "kernels/pages.h"
#include "kernels/plan.h"
#include "model/activations.h"
#include "model/config.h"
#include "model/kv_layout.h"
#include "model/placement.h"
#include "model/weights.h"

namespace bascule {

// Sees the residual stream [n_tokens, d_model] as it enters each layer; index n_layers is the state
// after the final norm.
using Tap = std::function<void(int64_t layer, View<const float, 2> hidden)>;

// The tokens of one step on one rank: pieces of prompts and single decoded tokens alike, in any
// order, the tokens of one sequence ascending.
struct Batch {
  View<const int32_t, 1> tokens;          // [n_tokens], ids below the vocabulary's size
  TokenPlaces places;                     // where each stands, and the pages of its sequence
  View<const int32_t, 1> logit_rows;      // rows whose logits are wanted, ascending
  std::span<const int64_t> group_tokens;  // [dp]: tokens of each data-parallel group in this step
  const Tap* tap = nullptr;

  int64_t n_tokens() const { return tokens.extent[0]; }
};

class Model {
 public:
  virtual ~Model() = default;

  // Everything that the cache holds under one page's id, one after the other.
  virtual void copy_pages(std::span<const PageCopy> copies) = 0;

  // Writes the cached rows of every token, and returns logits [logit_rows, vocab], valid until the
  // next call. Called by one thread, the rank's; all ranks are called with the same step.
  virtual View<const float, 2> forward(const Batch& batch, Stream& stream) = 0;
};

// What the caller chooses.
struct ModelOptions {
  Dtype activations = Dtype::kF32;                     // what products read: F32 or BF16
  ActivationScheme scheme = ActivationScheme::kPlain;  // and to what they round it
  Dtype kv_dtype = Dtype::kF32;                        // F32 or BF16
  int64_t max_batch_tokens = 512;                      // of one data-parallel group in one step
  int64_t max_logit_rows = 64;                         // of one step
  int64_t max_context = 4096;                          // positions stay below it
};

// One rank's connections; null where the group is this rank alone.
struct RankComms {
  Comm* tp = nullptr;     // ranks that share this one's attention
  Comm* world = nullptr;  // all
};

// A model of which every op is planned and nothing is allocated: enough for `bascule plan`.
class PlannedModel {
 public:
  virtual ~PlannedModel() = default;
  virtual const KvLayout& kv_layout() const = 0;

  // Named activation buffers of this rank, in bytes.
  virtual std::vector<Arena::Entry> activations() const = 0;
  virtual int64_t activation_bytes() const = 0;

  // Gives it memory and connections: activation_bytes() at `activations`, 64-byte aligned, and the
  // cache's pages at `kv`. Both, and the weights, must outlive the result.
  virtual std::unique_ptr<Model> bind(void* activations, void* kv, RankComms comms) const = 0;
};

// Adds the model's ops to `plan`. `config` and `weights` must outlive the result. Every family is
// listed in models.cc.
Result<std::unique_ptr<PlannedModel>> plan_model(const ModelConfig& config,
                                                 const ModelWeights& weights,
                                                 const Placement& placement,
                                                 const ModelOptions& options, Plan& plan);

}  // namespace bascule
