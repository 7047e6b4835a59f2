#include "engine/runner.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/trace.h"
#include "engine/request.h"

namespace bascule {
namespace {

template <typename T>
View<const T, 1> view_of(const std::vector<T>& v) {
  return View<const T, 1>::packed(v.data(), {int64_t(v.size())});
}

Batch batch_of(const StepPlan& step, const GroupPlan& plan, const Tap* tap) {
  return {.tokens = view_of(plan.tokens),
          .places = {.position = view_of(plan.position),
                     .sequence = view_of(plan.sequence),
                     .page_table = plan.page_table},
          .logit_rows = view_of(plan.logit_rows),
          .group_tokens = step.group_tokens,
          .tap = tap};
}

}  // namespace

// What drives one device.
struct Runner::Rank {
  Rank(const Placement& p, std::unique_ptr<Model> m, int n_threads, const RunnerOptions& options)
      : placement(p),
        model(std::move(m)),
        threads({.count = n_threads,
                 .scratch_bytes = options.scratch_bytes,
                 .shared_bytes = options.shared_bytes,
                 .cpus = {}}) {
    if (placement.speaks_for_group())
      for (int i = 0; i < n_threads; ++i) sampling.emplace_back(options.vocab_size);
    tap = [this](int64_t layer, View<const float, 2> hidden) {
      for (const WatchedRow& w : plan->watched)
        w.recorder->on_hidden(layer, w.position, hidden[w.row]);
    };
  }

  Placement placement;
  std::unique_ptr<Model> model;
  Threads threads;
  std::vector<SamplingScratch> sampling;  // of each worker; only where the rank speaks for a group
  const GroupPlan* plan = nullptr;        // of the step in progress
  Tap tap;                                // shows its watched rows
};

Runner::Runner(const RunnerOptions& options, std::vector<std::unique_ptr<Model>> models)
    : rank_threads_({.count = int(models.size()), .scratch_bytes = 0, .cpus = {}}) {
  const int world = int(models.size());
  BASCULE_CHECK_EQ(world, options.layout.world());
  for (int r = 0; r < world; ++r) {
    const int64_t share = part_of(options.n_threads, world, r).size();
    ranks_.push_back(std::make_unique<Rank>(Placement(options.layout, r), std::move(models[r]),
                                            int(std::max<int64_t>(1, share)), options));
  }
  result_.groups.resize(size_t(options.layout.dp));
}

Runner::~Runner() = default;

const StepResult& Runner::run(const StepPlan& plan) {
  const TraceZone zone(zones::kRun);
  for (size_t g = 0; g < plan.groups.size(); ++g)
    result_.groups[g].resize(plan.groups[g].draws.size());
  rank_threads_.run([&](int r) { run_rank(*ranks_[r], plan); });
  return result_;
}

// A rank whose group has nothing to do runs too: the others need its experts.
void Runner::run_rank(Rank& rank, const StepPlan& step) {
  const GroupPlan& plan = step.groups[rank.placement.group()];
  const bool speaks = rank.placement.speaks_for_group();
  rank.plan = &plan;
  Stream stream{&rank.threads};
  const Tap* tap = speaks && !plan.watched.empty() ? &rank.tap : nullptr;
  const View<const float, 2> logits = [&] {
    const TraceZone zone(zones::kForward);
    rank.model->copy_pages(plan.copies);
    return rank.model->forward(batch_of(step, plan, tap), stream);
  }();
  if (!speaks) return;
  for (const WatchedRow& w : plan.watched) w.recorder->on_logits(w.position, logits[w.logit_row]);
  draw(rank, plan, logits);
}

void Runner::draw(Rank& rank, const GroupPlan& plan, View<const float, 2> logits) {
  const TraceZone zone(zones::kDraw);
  std::vector<Sampled>& results = result_.groups[rank.placement.group()];
  rank.threads.tasks(int64_t(plan.draws.size()), [&](int64_t i, int worker) {
    const Draw& d = plan.draws[i];
    results[i] =
        d.sampler->sample(logits[d.logit_row], d.position, d.masked, rank.sampling[worker]);
  });
}

}  // namespace bascule
