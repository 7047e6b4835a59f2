// A kernel is a row: what it computes, where, how well, and when it refuses. Rows are data;
// registry.h holds them, plan.h chooses among them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "device/machine.h"
#include "device/stream.h"

namespace bascule {

struct Cost {        // of one launch, before any kernel is chosen
  double bytes = 0;  // compulsory traffic: each input and output once
  double flops = 0;
};

enum class Grade {
  kReference,   // plain loops: the definition of right
  kPortable,    // fast on any processor
  kOptimised,   // for an instruction set
  kSpecialised  // for one processor and shape
};  // later wins where nothing was measured

using Refusal = std::optional<std::string>;  // a reason for a person; empty: the row runs this op

// Every op is a struct of views. Null data pointers mean "this shape, some day": refuses(), cost()
// and scratch_bytes() look at shapes and types alone.
template <typename Op>
struct Kernel {
  std::string name;  // "cpu.matmul.avx2": device, op, way
  Grade grade = Grade::kReference;
  bool batch_invariant = true;  // a token's result doesn't depend on the others in its batch
  Refusal (*refuses)(const Op&, const Machine&) = nullptr;  // null: runs everything
  int64_t (*scratch_bytes)(const Op&) = nullptr;            // of each worker; null: none
  int64_t (*shared_bytes)(const Op&) = nullptr;             // of all workers together; null: none
  void (*launch)(const Op&, Stream&) = nullptr;
};

// A band is a range of token counts that shares a kernel choice; they are defined here alone.
inline constexpr int64_t kBandEnds[] = {1, 4, 16, 64, 256, INT64_MAX};  // largest count of each
inline constexpr int kBands = int(std::size(kBandEnds));

inline int band_of(int64_t n_tokens) {
  return int(std::lower_bound(std::begin(kBandEnds), std::end(kBandEnds), n_tokens) -
             std::begin(kBandEnds));
}

}  // namespace bascule
