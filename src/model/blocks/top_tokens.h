// The lightning indexer of one layer: which cached tokens each token attends to. Layers without an
// indexer of their own read the last owner's choice.
#pragma once

#include "model/blocks/buffers.h"

namespace bascule {

class TopTokens {
 public:
  // Plans the ops at the shapes and formats of `layer`'s indexer, which `n_layers` have.
  TopTokens(const ModelConfig& config, const ModelOptions& options, const LayerWeights& layer,
            double n_layers, const Buffers& shapes, const KvLayout& kv, Plan& plan);

  // Reads x and the normed q_latent; writes the index keys of the batch's tokens, and b.selected.
  void forward(const Batch& batch, const LayerWeights& layer, const Buffers& b,
               const PagedCache& keys, Stream& stream) const;

 private:
  MatMul query(const IndexerWeights& w, const Buffers& b, int64_t n) const;
  MatMul key(const IndexerWeights& w, const Buffers& b, int64_t n) const;
  LayerNorm key_norm(const IndexerWeights& w, const Buffers& b, int64_t n) const;
  MatMul head_weights(const IndexerWeights& w, const Buffers& b, int64_t n) const;
  Rope rotate(View<float, 2> x, int64_t n_heads, const Buffers& b, int64_t n) const;
  CacheWrite write_keys(const Buffers& b, const PagedCache& cache, const TokenPlaces& places,
                        int64_t n) const;
  SelectKeys select(const Buffers& b, const PagedCache& cache, const TokenPlaces& places,
                    int64_t n) const;

  const ModelConfig* config_;
  int64_t max_context_;
  ActivationScheme scheme_;
  struct Sites {
    Site<MatMul> query, key, head_weights;
    Site<LayerNorm> key_norm;
    Site<Rope> rotate_query, rotate_key;
    Site<CacheWrite> write_keys;
    Site<SelectKeys> select;
  } sites_;
};

}  // namespace bascule
