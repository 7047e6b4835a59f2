// Sparse MLA in the absorbed form. A task is some heads of some neighbouring tokens:
//   latent q of each head    its K_h meets the task's tokens          (mix)
//   scores, softmax, z       of a token: its keys meet all the heads  (dot, mix)
//   outputs of each head     its V_h meets the task's tokens          (dot)
// so that kv_b is read once for the tokens and the gathered keys once for the heads. Keys are read
// where they lie, through pointers. z takes the place of the latent q, which is spent by then.
#include <algorithm>
#include <cstring>
#include <span>

#include "kernels/cpu/products.h"
#include "kernels/cpu/rows.h"

namespace bascule::cpu {
namespace {

constexpr int64_t kTaskTokens = 8, kTaskHeads = 16;

// A worker's scratch, cut for one op.
struct Scratch {
  float* latent;         // [kTaskTokens][kTaskHeads][width]
  float* scores;         // [kTaskHeads][topk]
  float* values;         // [kTaskTokens][d_v]
  const void** keys;     // [topk]
  const void** weights;  // [max(d_nope, d_v)]
  const void** scales;   // of these
  int64_t size_bytes;

  Scratch(const SparseMla& op, std::byte* base) {
    const int64_t tokens = std::min(kTaskTokens, op.n_tokens());
    const int64_t heads = std::min(kTaskHeads, op.n_heads()), topk = op.selected.extent[1];
    ScratchCutter cut{base};
    latent = cut.take<float>(tokens * heads * op.cache.width);
    scores = cut.take<float>(heads * topk);
    values = cut.take<float>(tokens * op.d_v);
    keys = cut.take<const void*>(topk);
    weights = cut.take<const void*>(std::max(op.d_nope, op.d_v));
    scales = cut.take<const void*>(std::max(op.d_nope, op.d_v));
    size_bytes = cut.used_bytes;
  }
};

class Task {
 public:
  Task(const SparseMla& op, std::byte* scratch, const Loops& loops)
      : op_(op), loops_(loops), scratch_(op, scratch) {}

  void run(int64_t first_token, int64_t n_tokens, int64_t first_head, int64_t n_heads) {
    token_ = first_token;
    n_tokens_ = n_tokens;
    head_ = first_head;
    n_heads_ = n_heads;
    for (int64_t h = 0; h < n_heads_; ++h) absorb_keys(h);
    for (int64_t t = 0; t < n_tokens_; ++t) attend(t);
    for (int64_t h = 0; h < n_heads_; ++h) expand_values(h);
  }

 private:
  float* latent(int64_t t, int64_t h) const {
    return scratch_.latent + (t * n_heads_ + h) * op_.cache.width;
  }
  // Rows [first, first + n) of head h in kv_b.
  const void* const* weights(int64_t h, int64_t first, int64_t n) const {
    point_to_rows(op_.kv_b, (head_ + h) * (op_.d_nope + op_.d_v) + first,
                  std::span(scratch_.weights, size_t(n)), scratch_.scales);
    return scratch_.weights;
  }

  // The head's query in the space of the cache's rows: K_hᵀ q_nope, then q_rope.
  void absorb_keys(int64_t h) const {
    const float* q[kTaskTokens];
    float* out[kTaskTokens];
    for (int64_t t = 0; t < n_tokens_; ++t) {
      q[t] = &op_.q(token_ + t, head_ + h, 0);
      out[t] = latent(t, h);
      std::copy_n(q[t] + op_.d_nope, op_.d_rope, out[t] + op_.kv_rank());
    }
    loops_.mix({.w = weights(h, 0, op_.d_nope),
                .scales = scratch_.scales,
                .x = q,
                .y = out,
                .format = op_.kv_b.format,
                .n_rows = op_.d_nope,
                .n_columns = op_.kv_rank(),
                .n_tokens = n_tokens_});
  }

  // Points to the rows of the token's keys; how many there are.
  int64_t gather_keys(int64_t t) const {
    int64_t n = 0;
    for (; n < op_.selected.extent[1] && op_.selected(token_ + t, n) >= 0; ++n)
      scratch_.keys[n] = op_.places.row(op_.cache, token_ + t, op_.selected(token_ + t, n));
    return n;
  }

  void attend(int64_t t) const {
    const int64_t n_keys = gather_keys(t);
    const void* queries[kTaskHeads];
    float *scores[kTaskHeads], *z[kTaskHeads];
    for (int64_t h = 0; h < n_heads_; ++h) {
      queries[h] = z[h] = latent(t, h);
      scores[h] = scratch_.scores + h * op_.selected.extent[1];
    }
    loops_.dot({.w = scratch_.keys,
                .x = queries,
                .y = scores,
                .format = plain_format(op_.cache.dtype),
                .x_type = Dtype::kF32,
                .n_rows = n_keys,
                .n_in = op_.cache.width,
                .n_tokens = n_heads_});
    for (int64_t h = 0; h < n_heads_; ++h) loops_.softmax(scores[h], n_keys, op_.scale);
    loops_.mix({.w = scratch_.keys,
                .x = scores,
                .y = z,
                .format = plain_format(op_.cache.dtype),
                .n_rows = n_keys,
                .n_columns = op_.kv_rank(),
                .n_tokens = n_heads_});
  }

  void expand_values(int64_t h) const {
    const void* z[kTaskTokens];
    float* values[kTaskTokens];
    for (int64_t t = 0; t < n_tokens_; ++t) {
      z[t] = latent(t, h);
      values[t] = scratch_.values + t * op_.d_v;
    }
    loops_.dot({.w = weights(h, op_.d_nope, op_.d_v),
                .scales = scratch_.scales,
                .x = z,
                .y = values,
                .format = op_.kv_b.format,
                .x_type = Dtype::kF32,
                .n_rows = op_.d_v,
                .n_in = op_.kv_rank(),
                .n_tokens = n_tokens_});
    for (int64_t t = 0; t < n_tokens_; ++t) {
      char* o = static_cast<char*>(op_.o.row(token_ + t));
      loops_.narrow(values[t], op_.d_v, o + (head_ + h) * op_.d_v * size_bytes(op_.o.dtype),
                    op_.o.dtype);
    }
  }

  const SparseMla& op_;
  const Loops& loops_;
  const Scratch scratch_;
  int64_t token_ = 0, n_tokens_ = 0, head_ = 0, n_heads_ = 0;
};

// As many heads a task as leave every thread two tasks, in fours, which the loops take at a time.
int64_t heads_of_task(int64_t n_heads, int64_t n_blocks, int64_t n_threads) {
  const int64_t share = n_heads * n_blocks / (2 * n_threads);
  return std::clamp((share + 3) / 4 * 4, int64_t{1}, std::min(kTaskHeads, n_heads));
}

}  // namespace

Refusal refuses_sparse_mla(const SparseMla& op) {
  if (Refusal why = refuses_weight(op.kv_b)) return why;
  if (op.q.stride[2] != 1) return "columns of q aren't contiguous";
  if (!is_plain_float(op.cache.dtype)) return "the cache is " + std::string(name(op.cache.dtype));
  return refuses_activation(op.o);
}

int64_t sparse_mla_scratch_bytes(const SparseMla& op) { return Scratch(op, nullptr).size_bytes; }

void sparse_mla(const SparseMla& op, Stream& stream, const Loops& loops) {
  Threads& threads = *stream.threads;
  BASCULE_CHECK_LE(sparse_mla_scratch_bytes(op), int64_t(threads.scratch(0).size()));
  const int64_t n_blocks = (op.n_tokens() + kTaskTokens - 1) / kTaskTokens;
  const int64_t n_heads = heads_of_task(op.n_heads(), n_blocks, threads.count());
  const int64_t n_groups = (op.n_heads() + n_heads - 1) / n_heads;
  threads.tasks(n_blocks * n_groups, [&](int64_t task, int worker) {
    const int64_t token = task / n_groups * kTaskTokens, head = task % n_groups * n_heads;
    Task(op, threads.scratch(worker).data(), loops)
        .run(token, std::min(kTaskTokens, op.n_tokens() - token), head,
             std::min(n_heads, op.n_heads() - head));
  });
}

}  // namespace bascule::cpu
