// Bytes of every pool by formula, before anything is allocated and with no device present: what
// `bascule plan` prints and what the engine then takes. A context that does not fit is refused, and
// the largest one that does is told.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/arena.h"
#include "model/kv_layout.h"
#include "model/placement.h"

namespace bascule {

struct MemoryPool {
  std::string name;     // "KV cache"
  std::string formula;  // "4096 pages of 16 tokens x 95232 bytes, 2 ranks"
  int64_t bytes = 0;    // of all ranks
};

struct MemoryPlan {
  std::vector<MemoryPool> pools;
  int64_t available_bytes = 0;

  int64_t max_context = 0;                // tokens of a request
  int64_t n_pages = 0;                    // of each data-parallel group
  int64_t kv_token_bytes = 0;             // of one token on one rank
  std::vector<Arena::Entry> activations;  // of one rank, buffer by buffer
  std::vector<std::string> notices;       // what was narrowed, and why

  int64_t total_bytes() const;
  std::string text() const;  // a table for a person
};

// What the formulas need to know.
struct MemoryInputs {
  int64_t available_bytes = 0;
  Layout layout;
  int64_t weight_bytes = 0;  // mapped once, whatever the number of ranks
  int64_t packed_bytes = 0;  // of weights packed in memory
  const KvLayout* kv = nullptr;
  std::string kv_formula;                 // of a token, from kv_token_formula()
  std::vector<Arena::Entry> activations;  // of one rank
  int64_t activation_bytes = 0;           // of all ranks
  int n_workers = 1;                      // of all ranks
  // Kernels' scratch of one worker, for a context.
  std::function<int64_t(int64_t max_context)> scratch_bytes;
  int64_t shared_bytes = 0;  // and what workers share, of all ranks
  int64_t vocab_size = 0;
  int64_t max_positions = 0;  // the model's
  int64_t max_requests = 1;   // running at one time, in each group

  // What the caller wants; 0: as much as the model has and fits.
  int64_t max_context = 0;  // --max-model-len
  int64_t kv_tokens = 0;    // --kv-cache-bytes: of each group's cache
};

// Bytes of one cached token, for a person: "78 x 576 + 21 x 128 elements of BF16".
std::string kv_token_formula(const ModelConfig& config, Dtype dtype);

// kOutOfRange for more positions than the model has; kResourceExhausted for what does not fit.
Result<MemoryPlan> plan_memory(const MemoryInputs& inputs);

}  // namespace bascule
