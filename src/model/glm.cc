// The forward pass, read top to bottom: embed; for each layer, attention and feed-forward, both on
// a normed copy of the residual stream and added back to it; norm; logits.
#include "model/glm.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "model/blocks/buffers.h"
#include "model/blocks/gather.h"
#include "model/blocks/like_layers.h"
#include "model/blocks/mla.h"
#include "model/blocks/moe.h"

namespace bascule {
namespace {

// Everything but memory and connections. Copies freely: it owns tables of views, no weights.
class Glm final : public Model, public PlannedModel {
 public:
  Glm(const ModelConfig& config, const ModelWeights& weights, const Placement& placement,
      const ModelOptions& options, Plan& plan);

  const KvLayout& kv_layout() const override { return kv_layout_; }
  std::vector<Arena::Entry> activations() const override { return measured().entries(); }
  int64_t activation_bytes() const override { return measured().used_bytes(); }
  std::unique_ptr<Model> bind(void* activations, void* kv, RankComms comms) const override;

  void copy_pages(std::span<const PageCopy> copies) override;
  View<const float, 2> forward(const Batch& batch, Stream& stream) override;

 private:
  Arena measured() const {
    Arena arena;
    Buffers::lay_out(arena, *config_, placement_, options_);
    return arena;
  }
  void run_layer(int64_t l, const Batch& batch, Stream& stream);
  View<const float, 2> run_head(const Batch& batch, Stream& stream);
  void show_final(const Batch& batch, Stream& stream);

  Embed embed(View<const int32_t, 1> tokens, const Buffers& b) const;
  RopeTable rope_table(View<const int32_t, 1> position, const Buffers& b, int64_t n) const;
  RmsNorm norm(const Vector& weight, View<float, 2> x, const Tensor<2>& y, int64_t n) const;
  Embed last_rows(View<const int32_t, 1> rows, const Buffers& b) const;
  MatMul head(const Buffers& b, int64_t n) const;

  const ModelConfig* config_;
  const ModelWeights* weights_;
  Placement placement_;
  ModelOptions options_;
  KvLayout kv_layout_;
  std::vector<float> inverse_frequency_;
  std::vector<LocalExperts> experts_;  // [n_layers]; empty for dense layers

  Buffers b_;  // null pointers until bound
  void* kv_ = nullptr;
  RankComms comms_;

  std::optional<LikeLayers<Mla>> attention_;
  std::optional<LikeLayers<TopTokens>> top_tokens_;
  std::optional<LikeLayers<DenseMlp>> dense_;
  std::optional<LikeLayers<MoE>> moe_;
  struct Sites {
    Site<Embed> embed, last_rows;
    Site<RopeTable> rope_table;
    Site<RmsNorm> norm, last_norm, final_norm;
    Site<MatMul> head;
  } sites_;
};

Glm::Glm(const ModelConfig& config, const ModelWeights& weights, const Placement& placement,
         const ModelOptions& options, Plan& plan)
    : config_(&config),
      weights_(&weights),
      placement_(placement),
      options_(options),
      kv_layout_(config, options.kv_dtype),
      inverse_frequency_(rope_inverse_frequencies(config)) {
  Arena measure;
  const Buffers shapes = Buffers::lay_out(measure, config, placement, options);
  const auto rows = [](int64_t n) { return View<const int32_t, 1>::packed(nullptr, {n}); };
  const double n_layers = double(config.n_layers);

  sites_.embed = plan.add<Embed>("embed", 1, [&](int64_t n) { return embed(rows(n), shapes); });
  sites_.rope_table = plan.add<RopeTable>(
      "rope_table", 1, [&](int64_t n) { return rope_table(rows(n), shapes, n); });
  sites_.norm = plan.add<RmsNorm>("layers.norm", 2 * n_layers, [&](int64_t n) {
    return norm(weights.layers[0].input_norm, shapes.h, shapes.x, n);
  });
  const std::vector<LayerWeights>& layers = weights.layers;
  attention_.emplace(
      layers, [](const LayerWeights&) { return true; }, attention_formats,
      [&](const LayerWeights& layer, double n) {
        return Mla(config, placement, options, layer, n, shapes, kv_layout_, plan);
      });
  top_tokens_.emplace(
      layers, [](const LayerWeights& layer) { return layer.owns_indexer; }, indexer_formats,
      [&](const LayerWeights& layer, double n) {
        return TopTokens(config, options, layer, n, shapes, kv_layout_, plan);
      });
  dense_.emplace(
      layers, [](const LayerWeights& layer) { return !layer.is_sparse; }, dense_formats,
      [&](const LayerWeights& layer, double n) {
        return DenseMlp(config, placement, options, layer, n, shapes, plan);
      });
  moe_.emplace(
      layers, [](const LayerWeights& layer) { return layer.is_sparse; }, expert_formats,
      [&](const LayerWeights& layer, double n) {
        return MoE(config, placement, options, layer, n, shapes, plan);
      });
  for (size_t l = 0; l < layers.size(); ++l)
    experts_.push_back(layers[l].is_sparse ? moe_->of(int64_t(l))->local_experts(layers[l])
                                           : LocalExperts{});

  const auto n_last = [&](int64_t n) { return std::min(n, options.max_logit_rows); };
  sites_.last_rows = plan.add<Embed>("head.rows", 1,
                                     [&](int64_t n) { return last_rows(rows(n_last(n)), shapes); });
  sites_.last_norm = plan.add<RmsNorm>("head.norm", 1, [&](int64_t n) {
    return norm(weights.norm, shapes.last_h, shapes.last_x, n_last(n));
  });
  sites_.head = plan.add<MatMul>("head", 1, [&](int64_t n) { return head(shapes, n_last(n)); });
  sites_.final_norm = plan.add<RmsNorm>("tap.norm", 0, [&](int64_t n) {
    return norm(weights.norm, shapes.h, Tensor<2>::of(shapes.final), n);
  });
}

std::unique_ptr<Model> Glm::bind(void* activations, void* kv, RankComms comms) const {
  auto bound = std::make_unique<Glm>(*this);
  Arena arena(activations, activation_bytes());
  bound->b_ = Buffers::lay_out(arena, *config_, placement_, options_);
  bound->kv_ = kv;
  bound->comms_ = comms;
  return bound;
}

void Glm::copy_pages(std::span<const PageCopy> copies) {
  const int64_t size = kv_layout_.page_bytes();
  std::byte* const pages = static_cast<std::byte*>(kv_);
  for (const PageCopy& c : copies)
    std::memcpy(pages + c.to * size, pages + c.from * size, size_t(size));
}

View<const float, 2> Glm::forward(const Batch& batch, Stream& stream) {
  const int64_t n = batch.n_tokens();
  BASCULE_CHECK_LE(n, options_.max_batch_tokens);
  sites_.embed(embed(batch.tokens, b_), stream);
  sites_.rope_table(rope_table(batch.places.position, b_, n), stream);
  for (int64_t l = 0; l < config_->n_layers; ++l) {
    if (batch.tap) (*batch.tap)(l, b_.h.slice(0, n));
    run_layer(l, batch, stream);
  }
  if (batch.tap) show_final(batch, stream);
  return run_head(batch, stream);
}

void Glm::run_layer(int64_t l, const Batch& batch, Stream& stream) {
  const LayerWeights& w = weights_->layers[l];
  const int64_t n = batch.n_tokens();
  const PagedCache index_keys = w.owns_indexer ? kv_layout_.index_keys(kv_, l) : PagedCache{};

  sites_.norm(norm(w.input_norm, b_.h, b_.x, n), stream);
  attention_->of(l)->forward(batch, w, top_tokens_->of(l), b_, kv_layout_.latents(kv_, l),
                             index_keys, comms_.tp, stream);

  sites_.norm(norm(w.post_attention_norm, b_.h, b_.x, n), stream);
  if (w.is_sparse) {
    moe_->of(l)->forward(batch, w, experts_[l], b_, comms_, stream);
  } else {
    dense_->of(l)->forward(batch, w, b_, comms_.tp, stream);
  }
}

View<const float, 2> Glm::run_head(const Batch& batch, Stream& stream) {
  const int64_t n = batch.logit_rows.extent[0];
  BASCULE_CHECK_LE(n, options_.max_logit_rows);
  sites_.last_rows(last_rows(batch.logit_rows, b_), stream);
  sites_.last_norm(norm(weights_->norm, b_.last_h, b_.last_x, n), stream);
  sites_.head(head(b_, n), stream);
  gather_columns(comms_.tp, bytes_of(b_.logits.slice(0, n)), config_->vocab_size);
  return b_.logits.slice(0, n);
}

void Glm::show_final(const Batch& batch, Stream& stream) {
  const int64_t n = batch.n_tokens();
  sites_.final_norm(norm(weights_->norm, b_.h, Tensor<2>::of(b_.final), n), stream);
  (*batch.tap)(config_->n_layers, b_.final.slice(0, n));
}

Embed Glm::embed(View<const int32_t, 1> tokens, const Buffers& b) const {
  return {.tokens = tokens, .table = weights_->embed, .y = b.h.slice(0, tokens.extent[0])};
}

// The same op takes the rows whose logits are wanted out of the residual stream.
Embed Glm::last_rows(View<const int32_t, 1> rows, const Buffers& b) const {
  return {.tokens = rows, .table = Tensor<2>::of(b.h), .y = b.last_h.slice(0, rows.extent[0])};
}

RopeTable Glm::rope_table(View<const int32_t, 1> position, const Buffers& b, int64_t n) const {
  return {.position = position,
          .inverse_frequency =
              View<const float, 1>::packed(inverse_frequency_.data(), {config_->d_rope / 2}),
          .magnitude = rope_magnitude(*config_),
          .cos = b.cos.slice(0, n),
          .sin = b.sin.slice(0, n)};
}

RmsNorm Glm::norm(const Vector& weight, View<float, 2> x, const Tensor<2>& y, int64_t n) const {
  return {.x = x.slice(0, n), .weight = weight, .eps = config_->norm_eps, .y = y.slice(0, n)};
}

MatMul Glm::head(const Buffers& b, int64_t n) const {
  const Range vocab = placement_.tp_part(config_->vocab_size);
  return {.x = b.last_x.slice(0, n),
          .weight = weights_->head.w.slice(vocab.begin, vocab.size()),
          .y = b.logits.slice(0, n).columns(vocab.begin, vocab.size())};
}

// YaRN's magnitude for a context longer by `factor` (DeepSeek-V2 2024, eq. of the appendix on
// YaRN).
double yarn_mscale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

}  // namespace

float rope_magnitude(const ModelConfig& config) {
  if (!config.yarn) return 1;
  return float(yarn_mscale(config.yarn->factor, config.yarn->mscale) /
               yarn_mscale(config.yarn->factor, config.yarn->mscale_all_dim));
}

std::vector<float> rope_inverse_frequencies(const ModelConfig& config) {
  const double d = double(config.d_rope);
  std::vector<float> result;
  for (int64_t j = 0; j < config.d_rope / 2; ++j) {
    double frequency = std::pow(config.rope_theta, -2.0 * double(j) / d);
    if (const auto& yarn = config.yarn) {
      // The pair that turns `beta` times over the original context.
      const auto pair_of = [&](double beta) {
        return d * std::log(yarn->original_max_positions / (beta * 2 * std::numbers::pi)) /
               (2 * std::log(config.rope_theta));
      };
      const double low = std::max(std::floor(pair_of(yarn->beta_fast)), 0.0);
      const double high = std::min(std::ceil(pair_of(yarn->beta_slow)), d - 1);
      const double width = low == high ? 0.001 : high - low;
      const double slow = std::clamp((double(j) - low) / width, 0.0, 1.0);
      frequency = frequency / yarn->factor * slow + frequency * (1 - slow);
    }
    result.push_back(float(frequency));
  }
  return result;
}

Result<std::unique_ptr<PlannedModel>> plan_glm(const ModelConfig& config,
                                               const ModelWeights& weights,
                                               const Placement& placement,
                                               const ModelOptions& options, Plan& plan) {
  BASCULE_TRY(validate(placement.layout(), config));
  return std::unique_ptr<PlannedModel>(
      std::make_unique<Glm>(config, weights, placement, options, plan));
}

}  // namespace bascule
