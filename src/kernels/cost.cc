// Compulsory bytes and operations of each op, from shapes alone.
#include "kernels/registry.h"

namespace bascule {
namespace {

template <int Rank>
double bytes_of(const Tensor<Rank>& t) {
  return double(t.size()) * double(size_bytes(t.dtype));
}
double bytes_of(const WeightMatrix& w) { return double(w.size_bytes()); }
template <typename T, int Rank>
double bytes_of(const View<T, Rank>& v) {
  return double(v.size()) * sizeof(T);
}

// Experts that so many slots can reach.
double experts_touched(int64_t n_slots, size_t n_experts) {
  return double(std::min<int64_t>(n_slots, int64_t(n_experts)));
}

}  // namespace

Cost Embed::cost() const {
  return {bytes_of(y) + double(y.size()) * double(size_bytes(table.dtype)), 0};
}

Cost RmsNorm::cost() const {
  return {bytes_of(x) + bytes_of(y) + bytes_of(weight), 4.0 * double(x.size())};
}

Cost LayerNorm::cost() const {
  return {bytes_of(x) + bytes_of(y) + bytes_of(weight) + bytes_of(bias), 8.0 * double(x.size())};
}

Cost RopeTable::cost() const { return {bytes_of(cos) + bytes_of(sin), 2.0 * double(cos.size())}; }

Cost Rope::cost() const {
  return {2 * bytes_of(x) + bytes_of(cos) + bytes_of(sin), 3.0 * double(x.size())};
}

Cost MatMul::cost() const {
  return {bytes_of(x) + bytes_of(weight) + bytes_of(y) * (accumulate ? 2 : 1),
          2.0 * double(n_tokens()) * double(weight.n_weights())};
}

Cost Route::cost() const {
  return {bytes_of(logits) + bytes_of(experts) + bytes_of(weights), 8.0 * double(logits.size())};
}

Cost GroupSlots::cost() const { return {2 * bytes_of(experts), 0}; }

Cost ExpertUp::cost() const {
  if (experts.empty()) return {};
  const ExpertWeights& e = experts[0];
  const int64_t n_slots = act.extent[0];
  return {bytes_of(x) + bytes_of(act) +
              experts_touched(n_slots, experts.size()) * (bytes_of(e.gate) + bytes_of(e.up)),
          2.0 * double(n_slots) * double(e.gate.n_weights() + e.up.n_weights())};
}

Cost ExpertDown::cost() const {
  if (experts.empty()) return {};
  const ExpertWeights& e = experts[0];
  const int64_t n_slots = act.extent[0];
  return {bytes_of(act) + bytes_of(y) + experts_touched(n_slots, experts.size()) * bytes_of(e.down),
          2.0 * double(n_slots) * double(e.down.n_weights())};
}

Cost CombineSlots::cost() const {
  return {bytes_of(y) + bytes_of(weights) + 2 * bytes_of(h), 2.0 * double(y.size())};
}

Cost SparseMla::cost() const {
  const double n = double(n_tokens()), heads = double(n_heads()), keys = double(selected.extent[1]);
  const double latent = double(kv_rank());
  const double per_head = latent * double(d_nope + d_v) + keys * (2 * latent + double(d_rope));
  return {bytes_of(q) + bytes_of(o) + bytes_of(kv_b) + bytes_of(selected) +
              n * keys * double(cache.width) * double(size_bytes(cache.dtype)),
          2 * n * heads * per_head};
}

Cost SelectKeys::cost() const {
  const double context = double(max_context);
  const double key_bytes = double(keys.width) * double(size_bytes(keys.dtype));
  return {bytes_of(q) + bytes_of(weights) + bytes_of(selected) +
              double(n_tokens()) * context * key_bytes,
          2 * double(q.size()) * context};
}

Cost CacheWrite::cost() const {
  return {bytes_of(x) + double(x.size()) * double(size_bytes(cache.dtype)), 0};
}

}  // namespace bascule
