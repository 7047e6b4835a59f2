// The lightning indexer: scores of all keys, then their top k. With many tokens each worker has
// whole tokens; with few the keys of one token are shared out, block by block. A score is made by
// one worker either way, in one order.
#include <algorithm>
#include <numeric>
#include <span>

#include "kernels/cpu/products.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/top_k.h"

namespace bascule::cpu {
namespace {

constexpr int64_t kKeyBlock = 256;

// A worker's scratch, cut for one op. It doesn't grow with the number of tokens.
struct Scratch {
  float* scores;     // [max_context]
  float* products;   // [n_heads][kKeyBlock]
  float* weights;    // [n_heads]
  uint32_t* counts;  // [kTopKCounts]
  int64_t size_bytes;

  Scratch(const SelectKeys& op, std::byte* base) {
    ScratchCutter cut{base};
    scores = cut.take<float>(op.max_context);
    products = cut.take<float>(op.q.extent[1] * kKeyBlock);
    weights = cut.take<float>(op.q.extent[1]);
    counts = cut.take<uint32_t>(kTopKCounts);
    size_bytes = cut.used_bytes;
  }
};

int64_t n_keys_of(const SelectKeys& op, int64_t token) {
  return int64_t{op.places.position(token)} + 1;
}

// Scores of keys [first, last) of a token, at most kKeyBlock of them.
void score_block(const SelectKeys& op, int64_t token, int64_t first, int64_t last,
                 const Scratch& scratch, float* scores, const Loops& loops) {
  const void* keys[kKeyBlock];
  for (int64_t s = first; s < last; ++s) keys[s - first] = op.places.row(op.keys, token, s);
  const int64_t n_heads = op.q.extent[1];
  for (int64_t head = 0; head < n_heads; head += kMaxTokens) {
    const int64_t n = std::min(kMaxTokens, n_heads - head);
    const void* q[kMaxTokens];
    float* products[kMaxTokens];
    for (int64_t h = 0; h < n; ++h) {
      q[h] = &op.q(token, head + h, 0);
      products[h] = scratch.products + (head + h) * kKeyBlock;
    }
    loops.dot({.w = keys,
               .x = q,
               .y = products,
               .format = plain_format(op.keys.dtype),
               .x_type = Dtype::kF32,
               .n_rows = last - first,
               .n_in = op.keys.width,
               .n_tokens = n});
  }
  for (int64_t h = 0; h < n_heads; ++h) scratch.weights[h] = op.weight_scale * op.weights(token, h);
  loops.relu_sum(scratch.products, kKeyBlock, scratch.weights, n_heads, last - first,
                 scores + first);
}

// The token's keys from its scores.
void choose(const SelectKeys& op, int64_t token, const Scratch& scratch) {
  const int64_t k = op.selected.extent[1];
  top_k(scratch.scores, n_keys_of(op, token), k, &op.selected(token, 0), scratch.counts);
}

// With no more than topk keys all are selected.
bool takes_all(const SelectKeys& op, int64_t token) {
  const int64_t k = op.selected.extent[1], n_keys = n_keys_of(op, token);
  if (n_keys > k) return false;
  int32_t* out = &op.selected(token, 0);
  std::iota(out, out + n_keys, 0);
  std::fill(out + n_keys, out + k, -1);
  return true;
}

}  // namespace

Refusal refuses_select_keys(const SelectKeys& op) {
  if (op.q.stride[2] != 1 || op.selected.stride[1] != 1) return "columns aren't contiguous";
  if (!is_plain_float(op.keys.dtype)) return "the cache is " + std::string(name(op.keys.dtype));
  return {};
}

int64_t select_keys_scratch_bytes(const SelectKeys& op) { return Scratch(op, nullptr).size_bytes; }

void select_keys(const SelectKeys& op, Stream& stream, const Loops& loops) {
  Threads& threads = *stream.threads;
  BASCULE_CHECK_LE(select_keys_scratch_bytes(op), int64_t(threads.scratch(0).size()));
  const auto scratch_of = [&](int worker) { return Scratch(op, threads.scratch(worker).data()); };
  const auto score = [&](int64_t token, int64_t block, int worker, float* scores) {
    const int64_t first = block * kKeyBlock;
    score_block(op, token, first, std::min(first + kKeyBlock, n_keys_of(op, token)),
                scratch_of(worker), scores, loops);
  };
  const auto n_blocks = [&](int64_t token) {
    return (n_keys_of(op, token) + kKeyBlock - 1) / kKeyBlock;
  };
  if (op.n_tokens() >= 4 * threads.count()) {
    threads.tasks(op.n_tokens(), [&](int64_t token, int worker) {
      if (takes_all(op, token)) return;
      const Scratch own = scratch_of(worker);
      for (int64_t block = 0; block < n_blocks(token); ++block)
        score(token, block, worker, own.scores);
      choose(op, token, own);
    });
    return;
  }
  for (int64_t token = 0; token < op.n_tokens(); ++token) {
    if (takes_all(op, token)) continue;
    const Scratch shared = scratch_of(0);
    threads.tasks(n_blocks(token),
                  [&](int64_t block, int worker) { score(token, block, worker, shared.scores); });
    choose(op, token, shared);
  }
}

}  // namespace bascule::cpu
