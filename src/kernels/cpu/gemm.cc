// Products of activations with one weight matrix.
#include "kernels/cpu/products.h"
#include "kernels/cpu/rounded.h"
#include "kernels/cpu/rows.h"

namespace bascule::cpu {
namespace {

// Rows [first, last) of weights with the next tokens from `token` on, at most kMaxTokens.
void multiply(const MatMul& op, int64_t first, int64_t last, int64_t token, const Loops& loops) {
  constexpr int64_t kMaxRows = 256;
  const int64_t n_tokens = std::min(kMaxTokens, op.n_tokens() - token);
  const void *w[kMaxRows], *scales[kMaxRows];
  const void* x[kMaxTokens];
  float* y[kMaxTokens];
  point_to_rows(op.x, token, std::span(x, size_t(n_tokens)));
  for (int64_t row = first; row < last; row += kMaxRows) {
    const int64_t n_rows = std::min(kMaxRows, last - row);
    point_to_rows(op.weight, row, std::span(w, size_t(n_rows)), scales);
    for (int64_t t = 0; t < n_tokens; ++t) y[t] = &op.y(token + t, row);
    loops.dot({.w = w,
               .scales = scales,
               .x = x,
               .y = y,
               .format = op.weight.format,
               .x_type = op.x.dtype,
               .n_rows = n_rows,
               .n_in = op.n_in(),
               .n_tokens = n_tokens,
               .accumulate = op.accumulate});
  }
}

}  // namespace

Refusal refuses_matmul(const MatMul& op) {
  if (Refusal why = refuses_weight(op.weight)) return why;
  if (Refusal why = refuses_activation(op.x)) return why;
  if (op.y.stride[1] != 1) return "columns of y aren't contiguous";
  return {};
}

int64_t matmul_shared_bytes(const MatMul& op) {
  return rounded_bytes(op.rounding, op.n_tokens(), op.n_in());
}

void matmul(const MatMul& asked, Stream& stream, const Loops& loops) {
  MatMul op = asked;
  if (op.rounding != Rounding::kNone)
    op.x = rounded_rows(
        asked.x, op.rounding, op.n_tokens(), [](int64_t t) { return t; }, *stream.threads, loops);
  const int64_t block = std::min(kMaxTokens, op.n_tokens());
  const int64_t n_blocks = (op.n_tokens() + kMaxTokens - 1) / kMaxTokens;
  const int64_t row_cycles = cycles_of_row(block, op.n_in(), op.weight.format);
  const int64_t step =
      rows_of_task(row_cycles, row_cycles * op.n_out() * n_blocks, block, stream.threads->count());
  // Tasks of the same rows follow one another, so that these come from memory once.
  stream.threads->tasks((op.n_out() + step - 1) / step * n_blocks, [&](int64_t task, int) {
    const int64_t row = task / n_blocks * step;
    multiply(op, row, std::min(op.n_out(), row + step), task % n_blocks * kMaxTokens, loops);
  });
}

}  // namespace bascule::cpu
