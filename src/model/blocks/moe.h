// The feed-forward half of a layer: a dense MLP, or routed and shared experts. Adds to the residual
// stream.
#pragma once

#include <vector>

#include "model/blocks/buffers.h"

namespace bascule {

class DenseMlp {
 public:
  // Plans the ops at the shapes and formats of `layer`, which `n_layers` have.
  DenseMlp(const ModelConfig& config, const Placement& placement, const ModelOptions& options,
           const LayerWeights& layer, double n_layers, const Buffers& shapes, Plan& plan);

  void forward(const Batch& batch, const LayerWeights& layer, const Buffers& b, Comm* tp,
               Stream& stream) const;

 private:
  ExpertUp up(const ExpertWeights& w, const Buffers& b, int64_t n) const;
  MatMul down(const LayerWeights& w, const Buffers& b, int64_t n) const;
  ExpertWeights mine(const LayerWeights& w) const;  // this rank's rows

  const ModelConfig* config_ = nullptr;
  Placement placement_;
  ActivationScheme scheme_ = ActivationScheme::kPlain;
  struct Sites {
    Site<ExpertUp> up;
    Site<MatMul> down;
  } sites_;
};

// The experts of one layer that this rank computes, or its rows of them.
struct LocalExperts {
  std::vector<ExpertWeights> routed;  // and the shared ones after them, unless these are apart
  // The shared ones: where experts are spread, since every rank has these for its own tokens; or
  // where their format is another, since an op rounds its input for one.
  std::vector<ExpertWeights> shared;
};

class MoE {
 public:
  // Plans the ops at the shapes and formats of `layer`, which `n_layers` have.
  MoE(const ModelConfig& config, const Placement& placement, const ModelOptions& options,
      const LayerWeights& layer, double n_layers, const Buffers& shapes, Plan& plan);

  LocalExperts local_experts(const LayerWeights& layer) const;

  void forward(const Batch& batch, const LayerWeights& layer, const LocalExperts& experts,
               const Buffers& b, RankComms comms, Stream& stream) const;

 private:
  MatMul router(const LayerWeights& w, const Buffers& b, int64_t n) const;
  Route route(const LayerWeights& w, const Buffers& b, int64_t first, int64_t n) const;
  GroupSlots group(const Buffers& b, int64_t first_token, int64_t n, int64_t first_expert,
                   int64_t n_experts) const;
  ExpertUp up(std::span<const ExpertWeights> experts, const Tensor<2>& x, const Buffers& b,
              int64_t first_token, int64_t n) const;
  ExpertDown down(std::span<const ExpertWeights> experts, const Buffers& b, int64_t first_token,
                  int64_t n) const;
  CombineSlots combine(const Buffers& b, int64_t first_token, int64_t n) const;

  // Runs routed or shared experts, which begin at id `first_expert`, on tokens
  // [first_token, first_token + n).
  void run(std::span<const ExpertWeights> experts, const Site<ExpertUp>& up_site,
           const Site<ExpertDown>& down_site, int64_t first_expert, const Tensor<2>& x,
           const Buffers& b, int64_t first_token, int64_t n, Comm* tp, Stream& stream) const;
  // Tokens of all groups through this rank's experts, results back to where they belong.
  void run_spread(const Batch& batch, const LocalExperts& experts, const Buffers& b,
                  int64_t first_token, Comm& world, Stream& stream) const;
  Range output_columns() const;

  const ModelConfig* config_ = nullptr;
  Placement placement_;
  ActivationScheme scheme_ = ActivationScheme::kPlain;
  struct Sites {
    Site<MatMul> router;
    Site<Route> route;
    Site<GroupSlots> group;
    Site<ExpertUp> up, shared_up;
    Site<ExpertDown> down, shared_down;
    Site<CombineSlots> combine;
  } sites_;
};

}  // namespace bascule
