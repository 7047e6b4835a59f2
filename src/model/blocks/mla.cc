#include "model/blocks/mla.h"

#include "model/blocks/gather.h"

namespace bascule {

Mla::Mla(const ModelConfig& config, const Placement& placement, const ModelOptions& options,
         const LayerWeights& layer, double n_layers, const Buffers& shapes, const KvLayout& kv,
         Plan& plan)
    : config_(&config), placement_(placement), scheme_(options.scheme) {
  const PagedCache cache = kv.latents(nullptr, 0);
  const auto add = [&](auto& site, const char* name, auto op_at) {
    using Op = decltype(op_at(int64_t{1}));
    site = plan.add<Op>(std::string("layers.attention.") + name, n_layers, op_at);
  };
  add(sites_.q_a, "q_a", [&](int64_t n) { return q_a(layer, shapes, n); });
  add(sites_.q_a_norm, "q_a_norm", [&](int64_t n) { return q_a_norm(layer, shapes, n); });
  add(sites_.q_b, "q_b", [&](int64_t n) { return q_b(layer, shapes, n); });
  add(sites_.rotate_q, "rotate_q", [&](int64_t n) { return rotate_q(shapes, n); });
  add(sites_.kv_a, "kv_a", [&](int64_t n) { return kv_a(layer, shapes, n); });
  add(sites_.kv_a_norm, "kv_a_norm", [&](int64_t n) { return kv_a_norm(layer, shapes, n); });
  add(sites_.rotate_k, "rotate_k", [&](int64_t n) { return rotate_k(shapes, n); });
  add(sites_.write_latents, "write_latents",
      [&](int64_t n) { return write_latents(shapes, cache, {}, n); });
  add(sites_.attend, "attend", [&](int64_t n) { return attend(layer, shapes, cache, {}, n); });
  add(sites_.output, "output", [&](int64_t n) { return output(layer, shapes, n); });
}

void Mla::forward(const Batch& batch, const LayerWeights& layer, const TopTokens* indexer,
                  const Buffers& b, const PagedCache& latents, const PagedCache& index_keys,
                  Comm* tp, Stream& stream) const {
  const int64_t n = batch.n_tokens();
  sites_.q_a(q_a(layer, b, n), stream);
  sites_.q_a_norm(q_a_norm(layer, b, n), stream);
  sites_.q_b(q_b(layer, b, n), stream);
  sites_.rotate_q(rotate_q(b, n), stream);

  sites_.kv_a(kv_a(layer, b, n), stream);
  sites_.kv_a_norm(kv_a_norm(layer, b, n), stream);
  sites_.rotate_k(rotate_k(b, n), stream);
  sites_.write_latents(write_latents(b, latents, batch.places, n), stream);

  if (indexer != nullptr) indexer->forward(batch, layer, b, index_keys, stream);
  sites_.attend(attend(layer, b, latents, batch.places, n), stream);
  gather_columns(tp, bytes_of(b.o.slice(0, n)), config_->n_heads);
  sites_.output(output(layer, b, n), stream);
  gather_columns(tp, bytes_of(b.h.slice(0, n)), config_->d_model);
}

MatMul Mla::q_a(const LayerWeights& w, const Buffers& b, int64_t n) const {
  return {.x = b.x.slice(0, n),
          .weight = w.attention.q_a.w,
          .y = b.q_latent_raw.slice(0, n),
          .rounding = rounding_of(scheme_, w.attention.q_a.w.format)};
}

RmsNorm Mla::q_a_norm(const LayerWeights& w, const Buffers& b, int64_t n) const {
  return {.x = b.q_latent_raw.slice(0, n),
          .weight = w.attention.q_a_norm,
          .eps = config_->latent_norm_eps,
          .y = b.q_latent.slice(0, n)};
}

MatMul Mla::q_b(const LayerWeights& w, const Buffers& b, int64_t n) const {
  const Range heads = placement_.tp_part(config_->n_heads);
  const int64_t d_qk = config_->d_qk();
  return {.x = b.q_latent.slice(0, n),
          .weight = w.attention.q_b.w.slice(heads.begin * d_qk, heads.size() * d_qk),
          .y = b.q.slice(0, n),
          .rounding = rounding_of(scheme_, w.attention.q_b.w.format)};
}

MatMul Mla::kv_a(const LayerWeights& w, const Buffers& b, int64_t n) const {
  return {.x = b.x.slice(0, n),
          .weight = w.attention.kv_a.w,
          .y = b.kv.slice(0, n),
          .rounding = rounding_of(scheme_, w.attention.kv_a.w.format)};
}

RmsNorm Mla::kv_a_norm(const LayerWeights& w, const Buffers& b, int64_t n) const {
  const View<float, 2> latent = b.kv.slice(0, n).columns(0, config_->kv_rank);
  return {.x = latent,
          .weight = w.attention.kv_a_norm,
          .eps = config_->latent_norm_eps,
          .y = Tensor<2>::of(latent)};
}

Rope Mla::rotate_q(const Buffers& b, int64_t n) const {
  const int64_t n_heads = placement_.tp_part(config_->n_heads).size();
  const View<float, 3> rotated{b.q.data ? b.q.data + config_->d_nope : nullptr,
                               {n, n_heads, config_->d_rope},
                               {b.q.stride[0], config_->d_qk(), 1}};
  return {.x = rotated,
          .cos = b.cos.slice(0, n),
          .sin = b.sin.slice(0, n),
          .interleaved = config_->rope_interleaved};
}

Rope Mla::rotate_k(const Buffers& b, int64_t n) const {
  const View<float, 2> k = b.kv.slice(0, n).columns(config_->kv_rank, config_->d_rope);
  return {.x = {k.data, {n, 1, config_->d_rope}, {k.stride[0], config_->d_rope, 1}},
          .cos = b.cos.slice(0, n),
          .sin = b.sin.slice(0, n),
          .interleaved = config_->rope_interleaved};
}

CacheWrite Mla::write_latents(const Buffers& b, const PagedCache& cache, const TokenPlaces& places,
                              int64_t n) const {
  return {.x = b.kv.slice(0, n), .cache = cache, .places = places};
}

SparseMla Mla::attend(const LayerWeights& w, const Buffers& b, const PagedCache& cache,
                      const TokenPlaces& places, int64_t n) const {
  const Range heads = placement_.tp_part(config_->n_heads);
  const int64_t d_kv = config_->d_nope + config_->d_v;
  return {.q = {b.q.data, {n, heads.size(), config_->d_qk()}, {b.q.stride[0], config_->d_qk(), 1}},
          .kv_b = w.attention.kv_b.w.slice(heads.begin * d_kv, heads.size() * d_kv),
          .cache = cache,
          .places = places,
          .selected = b.selected.slice(0, n),
          .d_nope = config_->d_nope,
          .d_rope = config_->d_rope,
          .d_v = config_->d_v,
          .scale = float(config_->softmax_scale()),
          .o = b.o.slice(0, n).columns(heads.begin * config_->d_v, heads.size() * config_->d_v)};
}

MatMul Mla::output(const LayerWeights& w, const Buffers& b, int64_t n) const {
  const Range mine = placement_.tp_part(config_->d_model);
  return {.x = b.o.slice(0, n),
          .weight = w.attention.o.w.slice(mine.begin, mine.size()),
          .y = b.h.slice(0, n).columns(mine.begin, mine.size()),
          .accumulate = true,
          .rounding = rounding_of(scheme_, w.attention.o.w.format)};
}

}  // namespace bascule
