// The value that goes from scheduler to runner, and the one that comes back. Both are filled anew
// each step in memory that was reserved once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/sampling.h"
#include "kernels/pages.h"
#include "tensor/view.h"

namespace bascule {

class Request;
class RowRecorder;

// Consecutive tokens of one request in a step: a piece of its prompt, or its last token.
struct Piece {
  Request* request = nullptr;
  int64_t n_tokens = 0;
  bool draws = false;  // they reach the end of what is known: a token is drawn after the last
};

// A token to be drawn.
struct Draw {
  const Sampler* sampler = nullptr;
  std::span<const int32_t> masked;
  int64_t position = 0;  // where it will stand
  int64_t logit_row = 0;
};

// A row that somebody watches.
struct WatchedRow {
  RowRecorder* recorder = nullptr;
  int64_t row = 0, logit_row = 0, position = 0;
};

// What one data-parallel group runs.
struct GroupPlan {
  std::vector<PageCopy> copies;  // before anything runs
  std::vector<Piece> pieces;
  std::vector<int32_t> tokens, position, sequence;  // [n_tokens]; sequence: row of page_table
  View<const int32_t, 2> page_table;
  std::vector<int32_t> logit_rows;  // ascending
  std::vector<Draw> draws;          // in the order of the pieces that draw
  std::vector<WatchedRow> watched;

  int64_t n_tokens() const { return int64_t(tokens.size()); }
  void reserve(int64_t max_tokens, int64_t max_logit_rows);
  void clear();
};

struct StepPlan {
  std::vector<GroupPlan> groups;      // [dp]
  std::vector<int64_t> group_tokens;  // [dp]

  bool empty() const;
};

struct StepResult {
  std::vector<std::vector<Sampled>> groups;  // [dp][draws of the group]
};

inline void GroupPlan::reserve(int64_t max_tokens, int64_t max_logit_rows) {
  for (auto* column : {&tokens, &position, &sequence}) column->reserve(size_t(max_tokens));
  copies.reserve(size_t(max_tokens));
  pieces.reserve(size_t(max_tokens));
  logit_rows.reserve(size_t(max_logit_rows));
  draws.reserve(size_t(max_logit_rows));
  watched.reserve(size_t(max_logit_rows));
}

inline void GroupPlan::clear() {
  for (auto* column : {&tokens, &position, &sequence, &logit_rows}) column->clear();
  copies.clear();
  pieces.clear();
  draws.clear();
  watched.clear();
}

inline bool StepPlan::empty() const {
  for (const int64_t n : group_tokens)
    if (n > 0) return false;
  return true;
}

}  // namespace bascule
