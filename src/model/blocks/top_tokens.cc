#include "model/blocks/top_tokens.h"

#include <cmath>

namespace bascule {

TopTokens::TopTokens(const ModelConfig& config, const ModelOptions& options,
                     const LayerWeights& layer, double n_layers, const Buffers& shapes,
                     const KvLayout& kv, Plan& plan)
    : config_(&config), max_context_(options.max_context), scheme_(options.scheme) {
  const IndexerWeights& w = layer.indexer;
  const PagedCache cache = kv.index_keys(nullptr, 0);  // layer 0 always owns one
  const auto add = [&](auto& site, const char* name, auto op_at) {
    using Op = decltype(op_at(int64_t{1}));
    site = plan.add<Op>(std::string("layers.indexer.") + name, n_layers, op_at);
  };
  add(sites_.query, "query", [&](int64_t n) { return query(w, shapes, n); });
  add(sites_.key, "key", [&](int64_t n) { return key(w, shapes, n); });
  add(sites_.key_norm, "key_norm", [&](int64_t n) { return key_norm(w, shapes, n); });
  add(sites_.head_weights, "head_weights", [&](int64_t n) { return head_weights(w, shapes, n); });
  add(sites_.rotate_query, "rotate_query",
      [&](int64_t n) { return rotate(shapes.index_q, config.n_index_heads, shapes, n); });
  add(sites_.rotate_key, "rotate_key",
      [&](int64_t n) { return rotate(shapes.index_k, 1, shapes, n); });
  add(sites_.write_keys, "write_keys", [&](int64_t n) { return write_keys(shapes, cache, {}, n); });
  add(sites_.select, "select", [&](int64_t n) { return select(shapes, cache, {}, n); });
}

void TopTokens::forward(const Batch& batch, const LayerWeights& layer, const Buffers& b,
                        const PagedCache& keys, Stream& stream) const {
  const IndexerWeights& w = layer.indexer;
  const int64_t n = batch.n_tokens();
  sites_.key(key(w, b, n), stream);
  sites_.key_norm(key_norm(w, b, n), stream);
  sites_.rotate_key(rotate(b.index_k, 1, b, n), stream);
  sites_.write_keys(write_keys(b, keys, batch.places, n), stream);

  sites_.query(query(w, b, n), stream);
  sites_.rotate_query(rotate(b.index_q, config_->n_index_heads, b, n), stream);
  sites_.head_weights(head_weights(w, b, n), stream);
  sites_.select(select(b, keys, batch.places, n), stream);
}

MatMul TopTokens::query(const IndexerWeights& w, const Buffers& b, int64_t n) const {
  return {.x = b.q_latent.slice(0, n),
          .weight = w.wq_b.w,
          .y = b.index_q.slice(0, n),
          .rounding = rounding_of(scheme_, w.wq_b.w.format)};
}

MatMul TopTokens::key(const IndexerWeights& w, const Buffers& b, int64_t n) const {
  return {.x = b.x.slice(0, n),
          .weight = w.wk.w,
          .y = b.index_k.slice(0, n),
          .rounding = rounding_of(scheme_, w.wk.w.format)};
}

LayerNorm TopTokens::key_norm(const IndexerWeights& w, const Buffers& b, int64_t n) const {
  return {.x = b.index_k.slice(0, n),
          .weight = w.k_norm_weight,
          .bias = w.k_norm_bias,
          .eps = config_->index_norm_eps,
          .y = b.index_k.slice(0, n)};
}

MatMul TopTokens::head_weights(const IndexerWeights& w, const Buffers& b, int64_t n) const {
  return {.x = b.x.slice(0, n), .weight = w.weights_proj.w, .y = b.index_weights.slice(0, n)};
}

// The rotated dimensions come first in an index head; in an attention head they come last.
Rope TopTokens::rotate(View<float, 2> x, int64_t n_heads, const Buffers& b, int64_t n) const {
  const View<float, 3> heads{
      x.data, {n, n_heads, config_->d_rope}, {x.stride[0], config_->d_index, 1}};
  return {.x = heads,
          .cos = b.cos.slice(0, n),
          .sin = b.sin.slice(0, n),
          .interleaved = config_->index_rope_interleaved};
}

CacheWrite TopTokens::write_keys(const Buffers& b, const PagedCache& cache,
                                 const TokenPlaces& places, int64_t n) const {
  return {.x = b.index_k.slice(0, n), .cache = cache, .places = places};
}

SelectKeys TopTokens::select(const Buffers& b, const PagedCache& cache, const TokenPlaces& places,
                             int64_t n) const {
  const int64_t n_heads = config_->n_index_heads, d = config_->d_index;
  return {.q = {b.index_q.data, {n, n_heads, d}, {b.index_q.stride[0], d, 1}},
          .weights = b.index_weights.slice(0, n),
          .weight_scale = float(1 / std::sqrt(double(n_heads) * double(d))),
          .keys = cache,
          .places = places,
          .selected = b.selected.slice(0, n),
          .max_context = max_context_};
}

}  // namespace bascule
