// Products of int8 inputs with MXFP4 weights in tiles. Inputs are quantised once by all threads
// into the scratch that these share; then tasks are cut as those of the other rows are.
#include <span>

#include "kernels/cpu/expert_tasks.h"
#include "kernels/cpu/rows.h"

namespace bascule::cpu {
namespace {

int64_t quantised_bytes(int64_t n_columns) { return (n_columns + 31) / 32 * kInt8GroupBytes; }

// Rows of inputs, quantised.
struct Quantised {
  const std::byte* base;
  int64_t row_bytes;

  const void* row(int64_t i) const { return base + i * row_bytes; }
};

Quantised quantised(const Tensor<2>& x, Threads& threads, const Loops& loops) {
  const int64_t row_bytes = quantised_bytes(x.extent[1]);
  BASCULE_CHECK_LE(x.extent[0] * row_bytes, int64_t(threads.shared().size()));
  std::byte* base = threads.shared().data();
  threads.ranges(x.extent[0], 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      loops.quantise(x.row(i), x.dtype, x.extent[1], base + i * row_bytes);
  });
  return {base, row_bytes};
}

// Rows [row, row + n_rows) of w with n_tokens inputs.
TileBlock block_of(const WeightMatrix& w, int64_t row, int64_t n_rows, const void* const* x,
                   int64_t n_tokens, float* const* y) {
  return {.codes = w.row(row),
          .scales = w.scale_row(row),
          .tile_bytes = w.row_stride,
          .scale_bytes = w.scale_stride,
          .first_row = (w.first_row + row) % 8,
          .n_rows = n_rows,
          .n_groups = (w.n_in + 31) / 32,
          .x = x,
          .y = y,
          .n_tokens = n_tokens};
}

Refusal refuses_tiles(const WeightMatrix& w) {
  if (w.format != WeightFormat::kMxfp4Tiles)
    return "weights are " + std::string(name(w.format)) + ", not in tiles";
  if (w.first_column != 0) return "columns of weights begin inside a block of scales";
  return {};
}
Refusal refuses_input(const Tensor<2>& x, Rounding rounding) {
  if (rounding != Rounding::kInt8) return "inputs aren't rounded to int8";
  return refuses_activation(x);
}

void multiply_up(const ExpertUp& op, const TaskList::Task& task, const Quantised& inputs,
                 const Loops& loops) {
  const ExpertWeights& expert = op.experts[size_t(task.expert)];
  float gate_rows[kMaxTokens][kStepRows], up_rows[kMaxTokens][kStepRows];
  const void* x[kMaxTokens];
  float *gate[kMaxTokens], *up[kMaxTokens];
  for (int64_t t = 0; t < kMaxTokens; ++t) gate[t] = gate_rows[t], up[t] = up_rows[t];
  for_each_block(task, [&](int64_t slot, int64_t n_slots, int64_t row, int64_t n_rows) {
    for (int64_t t = 0; t < n_slots; ++t)
      x[t] = inputs.row(op.slots(slot + t) / op.slots_per_token);
    loops.dot_tiles(block_of(expert.gate, row, n_rows, x, n_slots, gate));
    loops.dot_tiles(block_of(expert.up, row, n_rows, x, n_slots, up));
    for (int64_t t = 0; t < n_slots; ++t) {
      char* act = static_cast<char*>(op.act.row(op.slots(slot + t)));
      loops.swiglu(gate[t], up[t], n_rows, act + row * size_bytes(op.act.dtype), op.act.dtype);
    }
  });
}

void multiply_down(const ExpertDown& op, const TaskList::Task& task, const Quantised& inputs,
                   const Loops& loops) {
  const WeightMatrix& down = op.experts[size_t(task.expert)].down;
  const void* x[kMaxTokens];
  float* y[kMaxTokens];
  for_each_block(task, [&](int64_t slot, int64_t n_slots, int64_t row, int64_t n_rows) {
    for (int64_t t = 0; t < n_slots; ++t) {
      x[t] = inputs.row(op.slots(slot + t));
      y[t] = &op.y(op.slots(slot + t), row);
    }
    loops.dot_tiles(block_of(down, row, n_rows, x, n_slots, y));
  });
}

}  // namespace

Refusal refuses_matmul_int8(const MatMul& op) {
  if (Refusal why = refuses_tiles(op.weight)) return why;
  if (op.y.stride[1] != 1) return "columns of y aren't contiguous";
  return refuses_input(op.x, op.rounding);
}
Refusal refuses_expert_up_int8(const ExpertUp& op) {
  for (const ExpertWeights& expert : op.experts) {
    if (Refusal why = refuses_tiles(expert.gate)) return why;
    if (Refusal why = refuses_tiles(expert.up)) return why;
  }
  if (Refusal why = refuses_input(op.x, op.rounding)) return why;
  return refuses_activation(op.act);
}
Refusal refuses_expert_down_int8(const ExpertDown& op) {
  for (const ExpertWeights& expert : op.experts)
    if (Refusal why = refuses_tiles(expert.down)) return why;
  if (op.y.stride[1] != 1) return "columns of y aren't contiguous";
  return refuses_input(op.act, op.rounding);
}

int64_t matmul_int8_shared_bytes(const MatMul& op) {
  return op.n_tokens() * quantised_bytes(op.n_in());
}
int64_t expert_up_int8_shared_bytes(const ExpertUp& op) {
  return op.x.extent[0] * quantised_bytes(op.x.extent[1]);
}
int64_t expert_down_int8_shared_bytes(const ExpertDown& op) {
  return op.act.extent[0] * quantised_bytes(op.act.extent[1]);
}

void matmul_int8(const MatMul& op, Stream& stream, const Loops& loops) {
  const Quantised inputs = quantised(op.x, *stream.threads, loops);
  const int64_t n_tokens = op.n_tokens(), n_blocks = (n_tokens + kMaxTokens - 1) / kMaxTokens;
  const int64_t block = std::min(kMaxTokens, n_tokens);
  const int64_t row_cycles = cycles_of_row(block, op.n_in(), op.weight.format);
  const int64_t step =
      rows_of_task(row_cycles, row_cycles * op.n_out() * n_blocks, block, stream.threads->count());
  stream.threads->tasks((op.n_out() + step - 1) / step * n_blocks, [&](int64_t task, int) {
    const int64_t row = task / n_blocks * step, token = task % n_blocks * kMaxTokens;
    const int64_t n = std::min(kMaxTokens, n_tokens - token);
    const void* x[kMaxTokens];
    float* y[kMaxTokens];
    for (int64_t t = 0; t < n; ++t) {
      x[t] = inputs.row(token + t);
      y[t] = &op.y(token + t, row);
    }
    TileBlock tiles = block_of(op.weight, row, std::min(step, op.n_out() - row), x, n, y);
    tiles.accumulate = op.accumulate;
    loops.dot_tiles(tiles);
  });
}

void expert_up_int8(const ExpertUp& op, Stream& stream, const Loops& loops) {
  if (op.experts.empty()) return;
  const Quantised inputs = quantised(op.x, *stream.threads, loops);
  const TaskList list(int64_t(op.experts.size()), op.begin, op.act.extent[1], 2 * op.x.extent[1],
                      op.experts[0].gate.format, *stream.threads);
  stream.threads->tasks(list.n_tasks(),
                        [&](int64_t task, int) { multiply_up(op, list[task], inputs, loops); });
}

void expert_down_int8(const ExpertDown& op, Stream& stream, const Loops& loops) {
  if (op.experts.empty()) return;
  const Quantised inputs = quantised(op.act, *stream.threads, loops);
  const TaskList list(int64_t(op.experts.size()), op.begin, op.y.extent[1], op.act.extent[1],
                      op.experts[0].down.format, *stream.threads);
  stream.threads->tasks(list.n_tasks(),
                        [&](int64_t task, int) { multiply_down(op, list[task], inputs, loops); });
}

}  // namespace bascule::cpu
