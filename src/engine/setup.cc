#include "engine/setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "device/host_memory.h"

namespace bascule {
namespace {

Status check_counts(const EngineOptions& o) {
  const auto at_least = [](const char* option, int64_t value, int64_t least) -> Status {
    if (value >= least) return {};
    return invalid_argument(fmt::format("{} {}: {} at least", option, value, least));
  };
  BASCULE_TRY(at_least("--threads", o.n_threads, 0));
  BASCULE_TRY(at_least("--max-model-len", o.max_context, 0));
  BASCULE_TRY(at_least("kv_tokens", o.kv_tokens, 0));
  BASCULE_TRY(at_least("--max-num-seqs", o.max_requests, 1));
  BASCULE_TRY(at_least("max_queued", o.max_queued, 1));
  // Each running answer has its next token, and a row of logits, in every step.
  if (o.max_logit_rows != 0)
    BASCULE_TRY(at_least("max_logit_rows", o.max_logit_rows, o.max_requests));
  return at_least("--max-batch-tokens", o.max_batch_tokens, o.max_requests)
      .with_context(fmt::format("with --max-num-seqs {}", o.max_requests));
}

Status check_dtype(const char* option, Dtype dtype) {
  if (dtype == Dtype::kF32 || dtype == Dtype::kBf16) return {};
  return unsupported(fmt::format("{} {}: F32 or BF16", option, name(dtype)));
}

// Every "auto" that needs no model.
Result<EngineOptions> resolved(EngineOptions o, const Machine& machine) {
  BASCULE_TRY(check_counts(o));
  o.scheme = resolve_scheme(o);
  o.activations = resolve_activations(o.activations, o.kernels);
  o.kv_dtype = o.kv_dtype.value_or(*o.activations);
  BASCULE_TRY(check_dtype("--activations", *o.activations));
  BASCULE_TRY(check_dtype("--kv-cache-dtype", *o.kv_dtype));
  if (o.n_threads == 0) o.n_threads = machine.n_cpus;
  if (o.max_logit_rows == 0)
    o.max_logit_rows = std::max(o.max_requests, std::min<int64_t>(64, o.max_batch_tokens));
  return o;
}

ModelOptions model_options(const EngineOptions& o, int64_t max_context) {
  return {.activations = *o.activations,
          .scheme = *o.scheme,
          .kv_dtype = *o.kv_dtype,
          .max_batch_tokens = o.max_batch_tokens,
          .max_logit_rows = o.max_logit_rows,
          .max_context = max_context};
}

// One rank's part, and its plan.
struct PlannedRank {
  Plan plan;
  std::unique_ptr<PlannedModel> model;
};
Result<PlannedRank> plan_rank(const LoadedModel& model, const EngineOptions& o,
                              const Machine& machine, int rank, int64_t max_context) {
  // Experts that are spread over ranks run the tokens of every group.
  const int64_t most_tokens = o.max_batch_tokens * (o.layout.ep > 1 ? o.layout.dp : 1);
  Plan plan({.mode = o.kernels, .machine = machine, .max_batch_tokens = most_tokens});
  BASCULE_TRY_ASSIGN(auto planned,
                     plan_model(model.config, model.weights, Placement(o.layout, rank),
                                model_options(o, max_context), plan));
  return PlannedRank{std::move(plan), std::move(planned)};
}

int n_workers(const EngineOptions& o) { return std::max(o.n_threads, o.layout.world()); }

// Connections of every rank: with the world, and with those that share its attention.
std::vector<RankComms> connect(const Layout& layout, std::vector<std::unique_ptr<Comm>>& owned) {
  std::vector<RankComms> ranks(size_t(layout.world()));
  const auto give = [&](int size, auto&& end_of) {
    for (auto& comm : make_local_comms(size)) {
      end_of(comm->rank()) = comm.get();
      owned.push_back(std::move(comm));
    }
  };
  if (layout.world() == 1) return ranks;
  give(layout.world(), [&](int r) -> Comm*& { return ranks[r].world; });
  for (int first = 0; layout.tp > 1 && first < layout.world(); first += layout.tp)
    give(layout.tp, [&](int r) -> Comm*& { return ranks[first + r].tp; });
  return ranks;
}

}  // namespace

Dtype resolve_activations(std::optional<Dtype> asked, KernelMode kernels) {
  if (asked) return *asked;
  return kernels == KernelMode::kReference ? Dtype::kF32 : Dtype::kBf16;
}

ActivationScheme resolve_scheme(const EngineOptions& options) {
  if (options.scheme) return *options.scheme;
  return options.activations || options.kernels == KernelMode::kReference ? ActivationScheme::kPlain
                                                                          : ActivationScheme::kInt8;
}

Result<EngineSetup> plan_engine(const LoadedModel& model, const EngineOptions& options) {
  BASCULE_TRY_ASSIGN(const Machine machine, Machine::detect().narrowed_to(options.cpu_target));
  BASCULE_TRY_ASSIGN(EngineOptions o, resolved(options, machine));
  BASCULE_TRY(validate(o.layout, model.config));
  const auto plan_at = [&](int rank, int64_t max_context) {
    return plan_rank(model, o, machine, rank, max_context);
  };

  // Parts are cut so that the last rank's are the largest.
  const int world = o.layout.world();
  std::vector<PlannedRank> ranks;
  int64_t activation_bytes = 0, shared_bytes = 0;
  for (int r = 0; r < world; ++r) {
    BASCULE_TRY_ASSIGN(PlannedRank rank, plan_at(r, KvLayout::kPageSize));
    activation_bytes += rank.model->activation_bytes();
    shared_bytes = std::max(shared_bytes, rank.plan.shared_bytes());
    ranks.push_back(std::move(rank));
  }
  const auto scratch_bytes = [&](int64_t max_context) {
    return plan_at(world - 1, max_context)->plan.scratch_bytes();
  };
  BASCULE_TRY_ASSIGN(MemoryPlan memory,
                     plan_memory({.available_bytes = HostMemory::detect().available_bytes +
                                                     model.packed_memory.size_bytes(),
                                  .layout = o.layout,
                                  .weight_bytes = model.weight_bytes,
                                  .packed_bytes = model.packed_memory.size_bytes(),
                                  .kv = &ranks[0].model->kv_layout(),
                                  .kv_formula = kv_token_formula(model.config, *o.kv_dtype),
                                  .activations = ranks[0].model->activations(),
                                  .activation_bytes = activation_bytes,
                                  .n_workers = n_workers(o),
                                  .scratch_bytes = scratch_bytes,
                                  .shared_bytes = shared_bytes * world,
                                  .vocab_size = model.config.vocab_size,
                                  .max_positions = model.config.max_positions,
                                  .max_requests = o.max_requests,
                                  .max_context = o.max_context,
                                  .kv_tokens = o.kv_tokens}));
  o.max_context = memory.max_context;
  o.kv_tokens = memory.n_pages * KvLayout::kPageSize;

  EngineSetup setup{
      .options = o, .machine = machine, .plans = {}, .ranks = {}, .memory = std::move(memory)};
  for (int r = 0; r < world; ++r) {
    BASCULE_TRY_ASSIGN(PlannedRank rank, plan_at(r, o.max_context));
    setup.scratch_bytes = std::max(setup.scratch_bytes, rank.plan.scratch_bytes());
    setup.shared_bytes = std::max(setup.shared_bytes, rank.plan.shared_bytes());
    setup.plans.push_back(std::move(rank.plan));
    setup.ranks.push_back(std::move(rank.model));
  }
  return setup;
}

Result<std::unique_ptr<Engine>> make_engine(const LoadedModel& model, const EngineSetup& setup) {
  const EngineOptions& o = setup.options;
  const KvLayout& kv = setup.ranks[0]->kv_layout();
  EngineParts parts{.scheduler = {.n_groups = o.layout.dp,
                                  .n_pages = setup.memory.n_pages,
                                  .page_size = KvLayout::kPageSize,
                                  .max_context = o.max_context,
                                  .max_batch_tokens = o.max_batch_tokens,
                                  .max_requests = o.max_requests,
                                  .max_logit_rows = o.max_logit_rows,
                                  .keeps_prefixes = o.keeps_prefixes},
                    .runner = {.layout = o.layout,
                               .n_threads = o.n_threads,
                               .scratch_bytes = setup.scratch_bytes,
                               .shared_bytes = setup.shared_bytes,
                               .vocab_size = model.config.vocab_size},
                    .rules = {.vocab_size = model.config.vocab_size,
                              .n_valid_tokens = o.n_valid_tokens.value_or(model.config.vocab_size),
                              .end_tokens = model.end_tokens},
                    .max_queued = o.max_queued,
                    .page_bytes = kv.page_bytes()};
  const std::vector<RankComms> comms = connect(o.layout, parts.comms);
  for (size_t r = 0; r < setup.ranks.size(); ++r) {
    const PlannedModel& rank = *setup.ranks[r];
    BASCULE_TRY_ASSIGN(Buffer activations, Buffer::reserve(rank.activation_bytes(), "activations"));
    BASCULE_TRY_ASSIGN(Buffer pages,
                       Buffer::reserve(setup.memory.n_pages * kv.page_bytes(), "KV cache"));
    parts.models.push_back(rank.bind(activations.data(), pages.data(), comms[r]));
    if (o.poisons_pages) parts.poisoned_pages.push_back(pages.data());
    parts.memory.push_back(std::move(activations));
    parts.memory.push_back(std::move(pages));
  }
  return Engine::create(std::move(parts));
}

}  // namespace bascule
