#include "model/blocks/moe.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "model/blocks/gather.h"

namespace bascule {
namespace {

// Rows `ff` of gate and up, rows `out` of down.
ExpertWeights rows_of(const MlpWeights& w, Range ff, Range out) {
  return {.gate = w.gate.w.slice(ff.begin, ff.size()),
          .up = w.up.w.slice(ff.begin, ff.size()),
          .down = w.down.w.slice(out.begin, out.size())};
}

// Shared expert i of a checkpoint that stores them as one wide MLP: its rows of gate and up, its
// columns of down.
MlpWeights shared_expert(const MlpWeights& shared, int64_t i, int64_t d_expert) {
  return {.gate = {shared.gate.w.slice(i * d_expert, d_expert)},
          .up = {shared.up.w.slice(i * d_expert, d_expert)},
          .down = {shared.down.w.columns(i * d_expert, d_expert)}};
}

// Whether an expert's formats are those of every other.
bool alike(const ExpertWeights& expert, const std::vector<ExpertWeights>& others) {
  return std::ranges::all_of(others, [&](const ExpertWeights& other) {
    return other.gate.format == expert.gate.format && other.up.format == expert.up.format &&
           other.down.format == expert.down.format;
  });
}

}  // namespace

DenseMlp::DenseMlp(const ModelConfig& config, const Placement& placement,
                   const ModelOptions& options, const LayerWeights& layer, double n_layers,
                   const Buffers& shapes, Plan& plan)
    : config_(&config), placement_(placement), scheme_(options.scheme) {
  const ExpertWeights w = mine(layer);
  sites_.up =
      plan.add<ExpertUp>("layers.dense.up", n_layers, [&](int64_t n) { return up(w, shapes, n); });
  sites_.down = plan.add<MatMul>("layers.dense.down", n_layers,
                                 [&](int64_t n) { return down(layer, shapes, n); });
}

ExpertWeights DenseMlp::mine(const LayerWeights& w) const {
  return rows_of(w.dense, placement_.tp_part(config_->d_dense),
                 placement_.tp_part(config_->d_model));
}

void DenseMlp::forward(const Batch& batch, const LayerWeights& layer, const Buffers& b, Comm* tp,
                       Stream& stream) const {
  const int64_t n = batch.n_tokens();
  b.one_group(0) = 0;
  b.one_group(1) = int32_t(n);
  std::iota(b.every_token.data, b.every_token.data + n, 0);
  const ExpertWeights w = mine(layer);
  sites_.up(up(w, b, n), stream);
  gather_columns(tp, bytes_of(b.dense_act.slice(0, n)), config_->d_dense);
  sites_.down(down(layer, b, n), stream);
  gather_columns(tp, bytes_of(b.h.slice(0, n)), config_->d_model);
}

ExpertUp DenseMlp::up(const ExpertWeights& w, const Buffers& b, int64_t n) const {
  const Range ff = placement_.tp_part(config_->d_dense);
  return {.x = b.x.slice(0, n),
          .experts = {&w, 1},
          .begin = b.one_group,
          .slots = b.every_token,
          .act = b.dense_act.slice(0, n).columns(ff.begin, ff.size()),
          .rounding = rounding_of(scheme_, w.gate.format)};
}

MatMul DenseMlp::down(const LayerWeights& w, const Buffers& b, int64_t n) const {
  const Range out = placement_.tp_part(config_->d_model);
  return {.x = b.dense_act.slice(0, n),
          .weight = w.dense.down.w.slice(out.begin, out.size()),
          .y = b.h.slice(0, n).columns(out.begin, out.size()),
          .accumulate = true,
          .rounding = rounding_of(scheme_, w.dense.down.w.format)};
}

MoE::MoE(const ModelConfig& config, const Placement& placement, const ModelOptions& options,
         const LayerWeights& layer, double n_layers, const Buffers& shapes, Plan& plan)
    : config_(&config), placement_(placement), scheme_(options.scheme) {
  const LocalExperts local = local_experts(layer);
  const auto add = [&](auto& site, const char* name, auto op_at) {
    using Op = decltype(op_at(int64_t{1}));
    site = plan.add<Op>(std::string("layers.experts.") + name, n_layers, op_at);
  };
  add(sites_.router, "router", [&](int64_t n) { return router(layer, shapes, n); });
  add(sites_.route, "route", [&](int64_t n) { return route(layer, shapes, 0, n); });
  add(sites_.group, "group",
      [&](int64_t n) { return group(shapes, 0, n, 0, int64_t(local.routed.size())); });
  add(sites_.up, "up", [&](int64_t n) { return up(local.routed, shapes.x_all, shapes, 0, n); });
  add(sites_.down, "down", [&](int64_t n) { return down(local.routed, shapes, 0, n); });
  if (!local.shared.empty()) {
    add(sites_.shared_up, "shared_up",
        [&](int64_t n) { return up(local.shared, shapes.x, shapes, 0, n); });
    add(sites_.shared_down, "shared_down",
        [&](int64_t n) { return down(local.shared, shapes, 0, n); });
  }
  add(sites_.combine, "combine", [&](int64_t n) { return combine(shapes, 0, n); });
}

LocalExperts MoE::local_experts(const LayerWeights& layer) const {
  const bool spread = placement_.spreads_experts();
  const Range ff = spread ? Range{0, config_->d_expert} : placement_.tp_part(config_->d_expert);
  const Range out = output_columns();
  LocalExperts local;
  const Range mine = placement_.experts(config_->n_experts);
  for (int64_t e = mine.begin; e < mine.end; ++e)
    local.routed.push_back(rows_of(layer.experts[e], ff, out));
  for (int64_t i = 0; i < config_->n_shared_experts; ++i) {
    const MlpWeights expert = shared_expert(layer.shared, i, config_->d_expert);
    const ExpertWeights rows = rows_of(expert, ff, out);
    const bool apart = spread || !alike(rows, local.routed);
    (apart ? local.shared : local.routed).push_back(rows);
  }
  return local;
}

// Which columns of the experts' outputs this rank computes and combines.
Range MoE::output_columns() const {
  return placement_.spreads_experts() ? Range{0, config_->d_model}
                                      : placement_.tp_part(config_->d_model);
}

void MoE::forward(const Batch& batch, const LayerWeights& layer, const LocalExperts& experts,
                  const Buffers& b, RankComms comms, Stream& stream) const {
  const int64_t n = batch.n_tokens();
  // Where this group's tokens begin among those of all groups.
  int64_t first = 0;
  if (placement_.spreads_experts())
    for (int g = 0; g < placement_.group(); ++g) first += batch.group_tokens[g];

  sites_.router(router(layer, b, n), stream);
  sites_.route(route(layer, b, first, n), stream);
  if (placement_.spreads_experts()) {
    run_spread(batch, experts, b, first, *comms.world, stream);
    sites_.combine(combine(b, first, n), stream);
    return;
  }
  run(experts.routed, sites_.up, sites_.down, 0, b.x, b, 0, n, comms.tp, stream);
  run(experts.shared, sites_.shared_up, sites_.shared_down, config_->n_experts, b.x, b, 0, n,
      comms.tp, stream);
  sites_.combine(combine(b, 0, n), stream);
  gather_columns(comms.tp, bytes_of(b.h.slice(0, n)), config_->d_model);
}

void MoE::run(std::span<const ExpertWeights> experts, const Site<ExpertUp>& up_site,
              const Site<ExpertDown>& down_site, int64_t first_expert, const Tensor<2>& x,
              const Buffers& b, int64_t first_token, int64_t n, Comm* tp, Stream& stream) const {
  if (experts.empty()) return;
  sites_.group(group(b, first_token, n, first_expert, int64_t(experts.size())), stream);
  up_site(up(experts, x, b, first_token, n), stream);
  const int64_t per_token = slots_per_token(*config_);
  gather_columns(tp, bytes_of(b.act.slice(first_token * per_token, n * per_token)),
                 config_->d_expert);
  down_site(down(experts, b, first_token, n), stream);
}

void MoE::run_spread(const Batch& batch, const LocalExperts& experts, const Buffers& b,
                     int64_t first_token, Comm& world, Stream& stream) const {
  const int64_t per_token = slots_per_token(*config_), n = batch.n_tokens();
  const int64_t n_all =
      std::accumulate(batch.group_tokens.begin(), batch.group_tokens.end(), int64_t{0});
  if (batch.group_tokens.size() > 1) {
    // One rank of each group hands over its tokens.
    constexpr int kMaxRanks = 64;
    std::array<int64_t, kMaxRanks + 1> first{};
    BASCULE_CHECK_LE(world.size(), kMaxRanks);
    for (int r = 0; r < world.size(); ++r) {
      const Placement theirs(placement_.layout(), r);
      first[r + 1] =
          first[r] + (theirs.speaks_for_group() ? batch.group_tokens[theirs.group()] : 0);
    }
    const std::span<const int64_t> rows(first.data(), size_t(world.size()) + 1);
    for (int64_t t = 0; t < n; ++t)
      std::memcpy(b.x_all.row(first_token + t), b.x.row(t),
                  size_t(config_->d_model * size_bytes(b.x.dtype)));
    world.gather_rows(bytes_of(b.x_all.slice(0, n_all)), rows);
    world.gather_rows(bytes_of(b.experts.slice(0, n_all)), rows);
  }
  run(experts.routed, sites_.up, sites_.down, placement_.experts(config_->n_experts).begin, b.x_all,
      b, 0, n_all, nullptr, stream);
  run(experts.shared, sites_.shared_up, sites_.shared_down, config_->n_experts, b.x, b, first_token,
      n, nullptr, stream);
  for (int64_t slot = first_token * per_token; slot < (first_token + n) * per_token; ++slot) {
    const int32_t expert = b.experts(slot / per_token, slot % per_token);
    b.slot_owner(slot) =
        expert < config_->n_experts ? placement_.expert_owner(expert, config_->n_experts) : -1;
  }
  world.collect_rows(b.slot_y.slice(0, n_all * per_token), b.slot_owner, first_token * per_token,
                     (first_token + n) * per_token);
}

MatMul MoE::router(const LayerWeights& w, const Buffers& b, int64_t n) const {
  return {.x = b.x.slice(0, n), .weight = w.router.w, .y = b.router_logits.slice(0, n)};
}

Route MoE::route(const LayerWeights& w, const Buffers& b, int64_t first, int64_t n) const {
  return {.logits = b.router_logits.slice(0, n),
          .bias = w.router_bias ? View<const float, 1>(w.router_bias.as<float>())
                                : View<const float, 1>{},
          .n_active = config_->n_active_experts,
          .n_groups = config_->n_expert_groups,
          .n_active_groups = config_->n_active_expert_groups,
          .sigmoid = config_->scoring == ExpertScoring::kSigmoid,
          .normalise = config_->normalise_expert_weights,
          .scale = float(config_->expert_scale),
          .experts = b.experts.slice(first, n),
          .weights = b.slot_weights.slice(0, n)};
}

GroupSlots MoE::group(const Buffers& b, int64_t first_token, int64_t n, int64_t first_expert,
                      int64_t n_experts) const {
  View<int32_t, 1> begin = b.group_begin;
  begin.extent[0] = n_experts + 1;
  return {.experts = b.experts.slice(first_token, n),
          .first_expert = first_expert,
          .begin = begin,
          .slots = b.slots};
}

ExpertUp MoE::up(std::span<const ExpertWeights> experts, const Tensor<2>& x, const Buffers& b,
                 int64_t first_token, int64_t n) const {
  const int64_t per_token = slots_per_token(*config_);
  const Range ff = placement_.spreads_experts() ? Range{0, config_->d_expert}
                                                : placement_.tp_part(config_->d_expert);
  return {
      .x = x.slice(0, n),
      .experts = experts,
      .begin = b.group_begin,
      .slots = b.slots,
      .slots_per_token = per_token,
      .act = b.act.slice(first_token * per_token, n * per_token).columns(ff.begin, ff.size()),
      .rounding = experts.empty() ? Rounding::kNone : rounding_of(scheme_, experts[0].gate.format)};
}

ExpertDown MoE::down(std::span<const ExpertWeights> experts, const Buffers& b, int64_t first_token,
                     int64_t n) const {
  const int64_t per_token = slots_per_token(*config_);
  const Range out = output_columns();
  return {
      .act = b.act.slice(first_token * per_token, n * per_token),
      .experts = experts,
      .begin = b.group_begin,
      .slots = b.slots,
      .slots_per_token = per_token,
      .y = b.slot_y.slice(first_token * per_token, n * per_token).columns(out.begin, out.size()),
      .rounding = experts.empty() ? Rounding::kNone : rounding_of(scheme_, experts[0].down.format)};
}

CombineSlots MoE::combine(const Buffers& b, int64_t first_token, int64_t n) const {
  const int64_t per_token = slots_per_token(*config_);
  const Range out = output_columns();
  return {
      .y = b.slot_y.slice(first_token * per_token, n * per_token).columns(out.begin, out.size()),
      .weights = b.slot_weights.slice(0, n),
      .h = b.h.slice(0, n).columns(out.begin, out.size())};
}

}  // namespace bascule
