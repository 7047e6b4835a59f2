// The work of a launch over experts, cut into tasks: each some rows of one expert's weights with
// all of its slots.
#pragma once

#include <span>

#include "base/threads.h"
#include "kernels/cpu/products.h"

namespace bascule::cpu {

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

}  // namespace bascule::cpu
