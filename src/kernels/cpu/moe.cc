// Products of tokens with the experts that they chose. One list of tasks covers all experts of a
// launch, each task some rows of one expert's weights with all of its slots, so that threads end
// together whether one expert has every token or each token its own.
#include <span>

#include "kernels/cpu/expert_tasks.h"
#include "kernels/cpu/products.h"
#include "kernels/cpu/rounded.h"
#include "kernels/cpu/rows.h"

namespace bascule::cpu {
namespace {

void multiply_up(const ExpertUp& op, const TaskList::Task& task, const Loops& loops) {
  const ExpertWeights& expert = op.experts[size_t(task.expert)];
  float products[kMaxTokens][2 * kStepRows];  // of gate, then of up
  const void *w[2 * kStepRows], *scales[2 * kStepRows], *x[kMaxTokens];
  float* y[kMaxTokens];
  for (int64_t t = 0; t < kMaxTokens; ++t) y[t] = products[t];
  for_each_block(task, [&](int64_t slot, int64_t n_slots, int64_t row, int64_t n_rows) {
    for (int64_t t = 0; t < n_slots; ++t) x[t] = op.x.row(op.slots(slot + t) / op.slots_per_token);
    point_to_rows(expert.gate, row, std::span(w, size_t(n_rows)), scales);
    point_to_rows(expert.up, row, std::span(w + n_rows, size_t(n_rows)), scales + n_rows);
    loops.dot({.w = w,
               .scales = scales,
               .x = x,
               .y = y,
               .format = expert.gate.format,
               .x_type = op.x.dtype,
               .n_rows = 2 * n_rows,
               .n_in = op.x.extent[1],
               .n_tokens = n_slots});
    for (int64_t t = 0; t < n_slots; ++t) {
      char* act = static_cast<char*>(op.act.row(op.slots(slot + t)));
      loops.swiglu(y[t], y[t] + n_rows, n_rows, act + row * size_bytes(op.act.dtype), op.act.dtype);
    }
  });
}

void multiply_down(const ExpertDown& op, const TaskList::Task& task, const Loops& loops) {
  const WeightMatrix& down = op.experts[size_t(task.expert)].down;
  const void *w[kStepRows], *scales[kStepRows], *x[kMaxTokens];
  float* y[kMaxTokens];
  for_each_block(task, [&](int64_t slot, int64_t n_slots, int64_t row, int64_t n_rows) {
    for (int64_t t = 0; t < n_slots; ++t) {
      x[t] = op.act.row(op.slots(slot + t));
      y[t] = &op.y(op.slots(slot + t), row);
    }
    point_to_rows(down, row, std::span(w, size_t(n_rows)), scales);
    loops.dot({.w = w,
               .scales = scales,
               .x = x,
               .y = y,
               .format = down.format,
               .x_type = op.act.dtype,
               .n_rows = n_rows,
               .n_in = op.act.extent[1],
               .n_tokens = n_slots});
  });
}

}  // namespace

Refusal refuses_expert_up(const ExpertUp& op) {
  for (const ExpertWeights& expert : op.experts) {
    if (Refusal why = refuses_weight(expert.gate)) return why;
    if (Refusal why = refuses_weight(expert.up)) return why;
    if (expert.gate.format != expert.up.format) return "gate and up differ in format";
  }
  if (Refusal why = refuses_activation(op.x)) return why;
  return refuses_activation(op.act);
}

Refusal refuses_expert_down(const ExpertDown& op) {
  for (const ExpertWeights& expert : op.experts)
    if (Refusal why = refuses_weight(expert.down)) return why;
  if (op.y.stride[1] != 1) return "columns of y aren't contiguous";
  return refuses_activation(op.act);
}

int64_t expert_up_scratch_bytes(const ExpertUp& op) {
  return TaskList::scratch_bytes(int64_t(op.experts.size()));
}
int64_t expert_down_scratch_bytes(const ExpertDown& op) {
  return TaskList::scratch_bytes(int64_t(op.experts.size()));
}

int64_t expert_up_shared_bytes(const ExpertUp& op) {
  return rounded_bytes(op.rounding, op.x.extent[0], op.x.extent[1]);
}
int64_t expert_down_shared_bytes(const ExpertDown& op) {
  return rounded_bytes(op.rounding, op.act.extent[0], op.act.extent[1]);
}

void expert_up(const ExpertUp& asked, Stream& stream, const Loops& loops) {
  if (asked.experts.empty()) return;
  ExpertUp op = asked;
  if (op.rounding != Rounding::kNone)
    op.x = rounded_rows(
        asked.x, op.rounding, op.x.extent[0], [](int64_t t) { return t; }, *stream.threads, loops);
  // Gate and up are read together: a row of the list stands for one of each.
  const TaskList list(int64_t(op.experts.size()), op.begin, op.act.extent[1], 2 * op.x.extent[1],
                      op.experts[0].gate.format, *stream.threads);
  stream.threads->tasks(list.n_tasks(),
                        [&](int64_t task, int) { multiply_up(op, list[task], loops); });
}

void expert_down(const ExpertDown& asked, Stream& stream, const Loops& loops) {
  if (asked.experts.empty()) return;
  ExpertDown op = asked;
  if (op.rounding != Rounding::kNone)
    op.act = rounded_rows(
        asked.act, op.rounding, op.act.extent[0], [](int64_t slot) { return slot; },
        *stream.threads, loops);
  const TaskList list(int64_t(op.experts.size()), op.begin, op.y.extent[1], op.act.extent[1],
                      op.experts[0].down.format, *stream.threads);
  stream.threads->tasks(list.n_tasks(),
                        [&](int64_t task, int) { multiply_down(op, list[task], loops); });
}

Refusal refuses_combine_slots(const CombineSlots& op) {
  if (op.y.stride[1] != 1 || op.h.stride[1] != 1 || op.weights.stride[1] != 1)
    return "columns aren't contiguous";
  return {};
}

void combine_slots(const CombineSlots& op, Stream& stream, const Loops& loops) {
  const int64_t slots_per_token = op.weights.extent[1];
  stream.threads->ranges(op.n_tokens(), 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t)
      loops.add_weighted(&op.y(t * slots_per_token, 0), op.y.stride[0], &op.weights(t, 0),
                         slots_per_token, op.h.extent[1], &op.h(t, 0));
  });
}

}  // namespace bascule::cpu
