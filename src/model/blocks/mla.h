// Sparse multi-head latent attention of one layer: projections, rotation, cache, the indexer's
// choice of keys, attention, output. Adds to the residual stream.
#pragma once

#include "model/blocks/buffers.h"
#include "model/blocks/top_tokens.h"

namespace bascule {

class Mla {
 public:
  // Plans the ops at the shapes and formats of `layer`, which `n_layers` have.
  Mla(const ModelConfig& config, const Placement& placement, const ModelOptions& options,
      const LayerWeights& layer, double n_layers, const Buffers& shapes, const KvLayout& kv,
      Plan& plan);

  // x is the normed input. Writes this layer's cache rows of the batch's tokens. Without an indexer
  // the last owner's choice of keys stands.
  void forward(const Batch& batch, const LayerWeights& layer, const TopTokens* indexer,
               const Buffers& b, const PagedCache& latents, const PagedCache& index_keys, Comm* tp,
               Stream& stream) const;

 private:
  MatMul q_a(const LayerWeights& w, const Buffers& b, int64_t n) const;
  RmsNorm q_a_norm(const LayerWeights& w, const Buffers& b, int64_t n) const;
  MatMul q_b(const LayerWeights& w, const Buffers& b, int64_t n) const;
  MatMul kv_a(const LayerWeights& w, const Buffers& b, int64_t n) const;
  RmsNorm kv_a_norm(const LayerWeights& w, const Buffers& b, int64_t n) const;
  Rope rotate_q(const Buffers& b, int64_t n) const;
  Rope rotate_k(const Buffers& b, int64_t n) const;
  CacheWrite write_latents(const Buffers& b, const PagedCache& cache, const TokenPlaces& places,
                           int64_t n) const;
  SparseMla attend(const LayerWeights& w, const Buffers& b, const PagedCache& cache,
                   const TokenPlaces& places, int64_t n) const;
  MatMul output(const LayerWeights& w, const Buffers& b, int64_t n) const;

  const ModelConfig* config_;
  Placement placement_;
  ActivationScheme scheme_;
  struct Sites {
    Site<MatMul> q_a, q_b, kv_a, output;
    Site<RmsNorm> q_a_norm, kv_a_norm;
    Site<Rope> rotate_q, rotate_k;
    Site<CacheWrite> write_latents;
    Site<SparseMla> attend;
  } sites_;
};

}  // namespace bascule
