#include "model/blocks/buffers.h"

namespace bascule {
namespace {

struct Taker {
  Arena& arena;
  Dtype activations;

  template <typename T, int Rank>
  void operator()(View<T, Rank>& view, std::string_view name, std::array<int64_t, Rank> extent) {
    view = View<T, Rank>::packed(nullptr, extent);
    view.data = static_cast<T*>(arena.take(name, view.size() * int64_t(sizeof(T))));
  }
  void operator()(Tensor<2>& tensor, std::string_view name, std::array<int64_t, 2> extent) {
    tensor = Tensor<2>::packed(nullptr, activations, extent);
    tensor.data = arena.take(name, tensor.size() * size_bytes(activations));
  }
};

}  // namespace

Buffers Buffers::lay_out(Arena& arena, const ModelConfig& c, const Placement& placement,
                         const ModelOptions& options) {
  const int64_t n = options.max_batch_tokens, n_rows = options.max_logit_rows;
  const bool gathers_tokens = placement.spreads_experts() && placement.layout().dp > 1;
  const int64_t n_all = gathers_tokens ? n * placement.layout().dp : n;
  const int64_t n_slots = n_all * slots_per_token(c);
  const int64_t n_heads = placement.tp_part(c.n_heads).size();

  Buffers b;
  Taker take{arena, options.activations};
  take(b.h, "h", {n, c.d_model});
  take(b.x, "x", {n, c.d_model});
  take(b.cos, "cos", {n, c.d_rope / 2});
  take(b.sin, "sin", {n, c.d_rope / 2});
  take(b.q_latent_raw, "q_latent_raw", {n, c.q_rank});
  take(b.q_latent, "q_latent", {n, c.q_rank});
  take(b.q, "q", {n, n_heads * c.d_qk()});
  take(b.kv, "kv", {n, c.d_latent()});
  take(b.index_q, "index_q", {n, c.n_index_heads * c.d_index});
  take(b.index_weights, "index_weights", {n, c.n_index_heads});
  take(b.index_k, "index_k", {n, c.d_index});
  take(b.selected, "selected", {n, c.index_topk});
  take(b.o, "o", {n, c.n_heads * c.d_v});

  take(b.dense_act, "dense_act", {n, c.d_dense});
  take(b.one_group, "one_group", {2});
  take(b.every_token, "every_token", {n});

  take(b.router_logits, "router_logits", {n, c.n_experts});
  take(b.slot_weights, "slot_weights", {n, slots_per_token(c)});
  take(b.experts, "experts", {n_all, slots_per_token(c)});
  if (gathers_tokens) {
    take(b.x_all, "x_all", {n_all, c.d_model});
  } else {
    b.x_all = b.x;
  }
  take(b.group_begin, "group_begin", {c.n_experts + c.n_shared_experts + 1});
  take(b.slots, "slots", {n_slots});
  take(b.slot_owner, "slot_owner", {n_slots});
  take(b.act, "act", {n_slots, c.d_expert});
  take(b.slot_y, "slot_y", {n_slots, c.d_model});

  take(b.last_h, "last_h", {n_rows, c.d_model});
  take(b.last_x, "last_x", {n_rows, c.d_model});
  take(b.logits, "logits", {n_rows, c.vocab_size});
  take(b.final, "final", {n, c.d_model});
  return b;
}

}  // namespace bascule
