#include "model/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace bascule {
namespace {

// The program itself: code, stacks, requests, text. An allowance, not a measurement.
constexpr int64_t kProgramBytes = int64_t{128} << 20;

std::string gib(int64_t bytes) { return fmt::format("{:.2f} GiB", double(bytes) / (1 << 30)); }

int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

// Pools for a context and a cache of so many tokens a group.
std::vector<MemoryPool> pools_for(const MemoryInputs& in, int64_t context, int64_t kv_tokens) {
  const int world = in.layout.world(), dp = in.layout.dp;
  const int64_t n_pages = KvLayout::pages_for(kv_tokens), scratch = in.scratch_bytes(context);
  const int64_t row_entries = KvLayout::pages_for(std::min(context, kv_tokens));
  return {
      {"weights", "mapped from the checkpoint, shared by all ranks", in.weight_bytes},
      {"packed weights", "MXFP4 in kernel layout, shared by all ranks", in.packed_bytes},
      {"KV cache",
       fmt::format("{} pages of {} tokens x {} bytes ({}), {} rank(s)", n_pages,
                   KvLayout::kPageSize, in.kv->token_bytes(), in.kv_formula, world),
       n_pages * in.kv->page_bytes() * world},
      {"activations", fmt::format("{} buffers, {} rank(s)", in.activations.size(), world),
       in.activation_bytes},
      {"kernel scratch",
       fmt::format("{} bytes x {} worker(s) + {} shared", scratch, in.n_workers, in.shared_bytes),
       scratch * in.n_workers + in.shared_bytes},
      {"sampling", fmt::format("{} tokens x 8 bytes x {} worker(s)", in.vocab_size, in.n_workers),
       in.vocab_size * 8 * in.n_workers},
      {"page table",
       fmt::format("{} rows of {} pages x 4 bytes, {} group(s)", in.max_requests, row_entries, dp),
       in.max_requests * row_entries * 4 * dp},
      {"program", "code, stacks, requests", kProgramBytes},
  };
}

int64_t sum_of(const std::vector<MemoryPool>& pools) {
  int64_t sum = 0;
  for (const MemoryPool& pool : pools) sum += pool.bytes;
  return sum;
}

// The largest n in [0, most], a multiple of the page size or `most` itself, for which fits(n);
// fits is true up to somewhere and false from there on.
template <typename Fits>
int64_t largest(int64_t most, Fits fits) {
  if (fits(most)) return most;
  int64_t low = 0, high = KvLayout::pages_for(most);  // in pages: low fits, high does not
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle * KvLayout::kPageSize) ? low : high) = middle;
  }
  return low * KvLayout::kPageSize;
}

}  // namespace

int64_t MemoryPlan::total_bytes() const { return sum_of(pools); }

std::string MemoryPlan::text() const {
  std::string text;
  for (const MemoryPool& pool : pools)
    text += fmt::format("{:<16} {:>16} bytes  {}\n", pool.name, pool.bytes, pool.formula);
  return text + fmt::format("{:<16} {:>16} bytes  of {} available\n", "in all", total_bytes(),
                            available_bytes);
}

std::string kv_token_formula(const ModelConfig& config, Dtype dtype) {
  return fmt::format("{} x {} + {} x {} elements of {}", config.n_layers, config.d_latent(),
                     config.n_index_layers(), config.d_index, name(dtype));
}

Result<MemoryPlan> plan_memory(const MemoryInputs& in) {
  const auto fits = [&](int64_t context, int64_t kv_tokens) {
    return sum_of(pools_for(in, context, kv_tokens)) <= in.available_bytes;
  };
  if (in.max_context > in.max_positions)
    return out_of_range(fmt::format("--max-model-len {}: this model has {} positions",
                                    in.max_context, in.max_positions));
  MemoryPlan plan{.available_bytes = in.available_bytes,
                  .kv_token_bytes = in.kv->token_bytes(),
                  .activations = in.activations};

  // A cache of a given size bounds nothing but itself; else it holds one whole context at least.
  const auto cache_for = [&](int64_t context) { return in.kv_tokens > 0 ? in.kv_tokens : context; };
  const int64_t wanted = in.max_context > 0 ? in.max_context : in.max_positions;
  plan.max_context = largest(wanted, [&](int64_t n) { return fits(n, cache_for(n)); });
  if (plan.max_context == 0)
    return resource_exhausted(
        fmt::format("{} needed and {} available: not one page of context fits. Fewer workers, "
                    "a smaller --max-batch-tokens or --kv-cache-bytes, or more memory would do",
                    gib(sum_of(pools_for(in, KvLayout::kPageSize, cache_for(KvLayout::kPageSize)))),
                    gib(in.available_bytes)));
  if (plan.max_context < wanted && in.max_context > 0)
    return resource_exhausted(
        fmt::format("--max-model-len {} needs {} and {} are available: the largest that fits is {}",
                    wanted, gib(sum_of(pools_for(in, wanted, cache_for(wanted)))),
                    gib(in.available_bytes), plan.max_context));
  if (plan.max_context < wanted)
    plan.notices.push_back(
        fmt::format("context narrowed to {} of the model's {} positions: {} are available",
                    plan.max_context, wanted, gib(in.available_bytes)));

  int64_t kv_tokens = in.kv_tokens;
  if (kv_tokens == 0)
    kv_tokens = largest(in.max_requests * plan.max_context,
                        [&](int64_t n) { return fits(plan.max_context, n); });
  kv_tokens = round_up(kv_tokens, KvLayout::kPageSize);
  plan.n_pages = KvLayout::pages_for(kv_tokens);
  plan.pools = pools_for(in, plan.max_context, kv_tokens);
  return plan;
}

}  // namespace bascule
