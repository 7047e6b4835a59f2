// Products of tokens with the experts that they chose. One list of tasks covers all experts of a
// launch, each task some rows of one expert's weights with all of its slots, so that threads end
// together whether one expert has every token or each token its own.
#include <span>

#include "kernels/cpu/products.h"
#include "kernels/cpu/rounded.h"
#include "kernels/cpu/rows.h"

namespace bascule::cpu {
namespace {

struct ExpertShare {  // of an expert that has slots
  int32_t expert;
  int32_t rows_per_task;
  int64_t first_task;
};

// The experts that have slots, with their tasks numbered one after another.
class TaskList {
 public:
  // n_rows rows of n_in columns an expert; `scratch` keeps the list.
  TaskList(int64_t n_experts, View<const int32_t, 1> begin, int64_t n_rows, int64_t n_in,
           WeightFormat format, Threads& threads)
      : begin_(begin), n_rows_(n_rows) {
    BASCULE_CHECK_LE(scratch_bytes(n_experts), int64_t(threads.scratch(0).size()));
    const auto n_slots = [&](int64_t e) { return int64_t{begin(e + 1)} - begin(e); };
    const auto row_cycles = [&](int64_t e) { return cycles_of_row(n_slots(e), n_in, format); };
    int64_t total_cycles = 0;
    for (int64_t e = 0; e < n_experts; ++e)
      if (n_slots(e) > 0) total_cycles += n_rows * row_cycles(e);
    auto* shares = reinterpret_cast<ExpertShare*>(threads.scratch(0).data());
    size_t n_shares = 0;
    for (int64_t e = 0; e < n_experts; ++e) {
      if (n_slots(e) == 0) continue;
      const int64_t rows = rows_of_task(row_cycles(e), total_cycles, n_slots(e), threads.count());
      shares[n_shares++] = {int32_t(e), int32_t(rows), n_tasks_};
      n_tasks_ += (n_rows + rows - 1) / rows;
    }
    shares_ = {shares, n_shares};
  }
  static int64_t scratch_bytes(int64_t n_experts) {
    return n_experts * int64_t(sizeof(ExpertShare));
  }

  int64_t n_tasks() const { return n_tasks_; }

  struct Task {
    int64_t expert, first_row, last_row, first_slot, last_slot;
  };
  Task operator[](int64_t task) const {
    const auto after = [](int64_t t, const ExpertShare& share) { return t < share.first_task; };
    const ExpertShare& share =
        *std::prev(std::upper_bound(shares_.begin(), shares_.end(), task, after));
    const int64_t row = (task - share.first_task) * share.rows_per_task;
    return {share.expert, row, std::min(n_rows_, row + share.rows_per_task), begin_(share.expert),
            begin_(share.expert + 1)};
  }

 private:
  View<const int32_t, 1> begin_;
  int64_t n_rows_, n_tasks_ = 0;
  std::span<const ExpertShare> shares_;
};

constexpr int64_t kStepRows = 64;  // of weights whose products are finished together

// Calls f(first_slot, n_slots, row, n_rows) for the blocks of a task.
template <typename F>
void for_each_block(const TaskList::Task& task, F f) {
  for (int64_t slot = task.first_slot; slot < task.last_slot; slot += kMaxTokens)
    for (int64_t row = task.first_row; row < task.last_row; row += kStepRows)
      f(slot, std::min(kMaxTokens, task.last_slot - slot), row,
        std::min(kStepRows, task.last_row - row));
}

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
