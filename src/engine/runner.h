// Runs a step: every rank's forward pass over its group's tokens, and the draws. One thread a rank,
// each with its own team of workers; the first rank works on the caller's thread.
#pragma once

#include <memory>
#include <vector>

#include "base/threads.h"
#include "engine/step_plan.h"
#include "model/model.h"

namespace bascule {

struct RunnerOptions {
  Layout layout;
  int n_threads = 1;          // of all ranks together; each has at least one
  int64_t scratch_bytes = 0;  // of each worker, for kernels
  int64_t shared_bytes = 0;   // of each rank's workers together
  int64_t vocab_size = 0;
};

class Runner {
 public:
  // models: [world], bound to their memory and connected with each other.
  Runner(const RunnerOptions& options, std::vector<std::unique_ptr<Model>> models);
  ~Runner();

  // Called by one thread. The result is valid until the next call.
  const StepResult& run(const StepPlan& plan);

 private:
  struct Rank;
  void run_rank(Rank& rank, const StepPlan& plan);
  void draw(Rank& rank, const GroupPlan& plan, View<const float, 2> logits);

  std::vector<std::unique_ptr<Rank>> ranks_;
  Threads rank_threads_;
  StepResult result_;
};

}  // namespace bascule
