#include <cmath>
#include <vector>

#include "kernels/reference/rows.h"

namespace bascule::reference {
namespace {

// What one token's attention reads, as doubles: the cached rows of its keys, and kv_b by head.
struct TokenView {
  TokenView(const SparseMla& op, int64_t token) : op(op) {
    for (int64_t i = 0; i < op.selected.extent[1] && op.selected(token, i) >= 0; ++i) {
      const void* row = op.places.row(op.cache, token, op.selected(token, i));
      for (int64_t c = 0; c < op.cache.width; ++c) keys.push_back(load(row, op.cache.dtype, c));
      ++n_keys;
    }
  }
  double latent(size_t key, int64_t r) const { return keys[key * op.cache.width + r]; }
  double rotated(size_t key, int64_t r) const { return latent(key, op.kv_rank() + r); }
  double key_weight(int64_t head, int64_t d, int64_t r) const {
    return op.kv_b(head * (op.d_nope + op.d_v) + d, r);
  }
  double value_weight(int64_t head, int64_t d, int64_t r) const {
    return key_weight(head, op.d_nope + d, r);
  }

  const SparseMla& op;
  size_t n_keys = 0;
  std::vector<double> keys;  // [n_keys, kv_rank + d_rope]
};

void softmax(std::vector<double>& x) {
  double largest = -INFINITY, sum = 0;
  for (const double v : x) largest = std::max(largest, v);
  for (double& v : x) sum += v = std::exp(v - largest);
  for (double& v : x) v /= sum;
}

// q_rope · r(s) of every key.
std::vector<double> rope_scores(const SparseMla& op, const TokenView& view, int64_t t, int64_t h) {
  std::vector<double> scores(view.n_keys);
  for (size_t key = 0; key < scores.size(); ++key)
    for (int64_t r = 0; r < op.d_rope; ++r)
      scores[key] += double(op.q(t, h, op.d_nope + r)) * view.rotated(key, r);
  return scores;
}

void absorbed_head(const SparseMla& op, const TokenView& view, int64_t t, int64_t h) {
  std::vector<double> q_latent(op.kv_rank()), z(op.kv_rank());
  for (int64_t r = 0; r < op.kv_rank(); ++r)
    for (int64_t d = 0; d < op.d_nope; ++d) q_latent[r] += op.q(t, h, d) * view.key_weight(h, d, r);
  std::vector<double> p = rope_scores(op, view, t, h);
  for (size_t key = 0; key < p.size(); ++key) {
    for (int64_t r = 0; r < op.kv_rank(); ++r) p[key] += q_latent[r] * view.latent(key, r);
    p[key] *= op.scale;
  }
  softmax(p);
  for (size_t key = 0; key < p.size(); ++key)
    for (int64_t r = 0; r < op.kv_rank(); ++r) z[r] += p[key] * view.latent(key, r);
  for (int64_t d = 0; d < op.d_v; ++d) {
    double sum = 0;
    for (int64_t r = 0; r < op.kv_rank(); ++r) sum += view.value_weight(h, d, r) * z[r];
    store(op.o.row(t), op.o.dtype, h * op.d_v + d, float(sum));
  }
}

void expanded_head(const SparseMla& op, const TokenView& view, int64_t t, int64_t h) {
  std::vector<double> p = rope_scores(op, view, t, h);
  for (size_t key = 0; key < p.size(); ++key) {
    for (int64_t d = 0; d < op.d_nope; ++d) {
      double k = 0;
      for (int64_t r = 0; r < op.kv_rank(); ++r)
        k += view.key_weight(h, d, r) * view.latent(key, r);
      p[key] += op.q(t, h, d) * k;
    }
    p[key] *= op.scale;
  }
  softmax(p);
  for (int64_t d = 0; d < op.d_v; ++d) {
    double sum = 0;
    for (size_t key = 0; key < p.size(); ++key) {
      double v = 0;
      for (int64_t r = 0; r < op.kv_rank(); ++r)
        v += view.value_weight(h, d, r) * view.latent(key, r);
      sum += p[key] * v;
    }
    store(op.o.row(t), op.o.dtype, h * op.d_v + d, float(sum));
  }
}

template <typename Head>
void for_each_head(const SparseMla& op, Head head) {
  for (int64_t t = 0; t < op.n_tokens(); ++t) {
    const TokenView view(op, t);
    for (int64_t h = 0; h < op.n_heads(); ++h) head(op, view, t, h);
  }
}

}  // namespace

void sparse_mla_absorbed(const SparseMla& op, Stream&) { for_each_head(op, absorbed_head); }
void sparse_mla_expanded(const SparseMla& op, Stream&) { for_each_head(op, expanded_head); }

}  // namespace bascule::reference
