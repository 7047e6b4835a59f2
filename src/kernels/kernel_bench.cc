// Every row that this machine runs, on shapes of a small and a large model, as shares of what the
// machine measured at the start of the same process:
//   kernels_bench --benchmark_filter='matmul.*avx2.*1 thread'
// Weights come from memory, as in a step of a model: each round takes the next of many matrices.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <random>
#include <vector>

#include "device/peaks.h"
#include "kernels/registry.h"

namespace bascule {
namespace {

// A team that has the calling thread for its worker 0, made when first asked for.
Threads& team(int n_threads) {
  static std::vector<std::unique_ptr<Threads>> teams(size_t(Machine::detect().n_cpus) + 1);
  std::unique_ptr<Threads>& t = teams[size_t(n_threads)];
  if (!t)
    t = std::make_unique<Threads>(
        Threads::Options{.count = n_threads, .scratch_bytes = 64 << 20, .shared_bytes = 64 << 20});
  return *t;
}

const Peaks& peaks() {
  static const Peaks measured = measure_peaks(Machine::detect(), team(Machine::detect().n_cpus));
  return measured;
}

// bf16 numbers near one, far more than the caches hold.
class Weights {
 public:
  static constexpr int64_t kBytes = int64_t{256} << 20;

  Weights() : values_(kBytes / 2) {
    std::mt19937 engine(1);
    for (bf16& v : values_) v = {uint16_t(0x3c00 + engine() % 0x300 + (engine() % 2 << 15))};
  }
  // Another matrix each time.
  Tensor<2> next(int64_t n_rows, int64_t n_columns) {
    const int64_t size = n_rows * n_columns;
    if (used_ + size > int64_t(values_.size())) used_ = 0;
    const Tensor<2> t =
        Tensor<2>::packed(&values_[size_t(used_)], Dtype::kBf16, {n_rows, n_columns});
    used_ += (size + 2047) / 2048 * 2048;
    return t;
  }

 private:
  std::vector<bf16> values_;
  int64_t used_ = 0;
};
Weights& weights() {
  static Weights w;
  return w;
}

// Activations that lie packed, and what an op writes.
class Activations {
 public:
  Activations(int64_t n_rows, int64_t n_columns, Dtype dtype)
      : bytes_(size_t(n_rows * n_columns * size_bytes(dtype))),
        tensor_(Tensor<2>::packed(bytes_.data(), dtype, {n_rows, n_columns})) {
    std::mt19937 engine(2);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < tensor_.size(); ++i) store(tensor_.data, dtype, i, normal(engine));
  }
  const Tensor<2>& tensor() const { return tensor_; }
  View<float, 2> view() const { return tensor_.as<float>(); }

 private:
  std::vector<std::byte> bytes_;
  Tensor<2> tensor_;
};

// Runs a row on the ops that next() makes.
template <typename Op, typename Next>
void time_row(benchmark::State& state, const Kernel<Op>& row, int n_threads, Next next) {
  Stream stream{&team(n_threads)};
  const Cost cost = next().cost();
  for (auto _ : state) row.launch(next(), stream);
  const Peaks::Of& peak = n_threads == 1 ? peaks().one : peaks().all;
  using benchmark::Counter;
  const double rounds = double(state.iterations());
  state.counters["B/s"] = Counter(cost.bytes * rounds, Counter::kIsRate);
  state.counters["of_read"] =
      Counter(cost.bytes * rounds / peak.read_bytes_per_second, Counter::kIsRate);
  if (cost.flops == 0) return;
  state.counters["FLOP/s"] = Counter(cost.flops * rounds, Counter::kIsRate);
  state.counters["of_fma"] =
      Counter(cost.flops * rounds / peak.fma_flops_per_second, Counter::kIsRate);
}

// One benchmark for each row of the op, at one thread and at all. make(n_tokens) gives a next().
template <typename Op, typename Make>
void add(const std::string& shape, const std::vector<int64_t>& token_counts, Make make) {
  const Machine machine = Machine::detect();
  for (const Kernel<Op>& row : registry().rows<Op>()) {
    if (row.grade == Grade::kReference) continue;
    for (const int64_t n_tokens : token_counts) {
      auto next = make(n_tokens);
      if (row.refuses && row.refuses(next(), machine)) continue;
      for (int n_threads : {1, machine.n_cpus}) {
        const std::string label =
            fmt::format("{} {}, {} token{}, {} thread{}", row.name, shape, n_tokens,
                        n_tokens == 1 ? "" : "s", n_threads, n_threads == 1 ? "" : "s");
        benchmark::RegisterBenchmark(label.c_str(), [&row, next,
                                                     n_threads](benchmark::State& state) mutable {
          time_row(state, row, n_threads, next);
        })->UseRealTime();
        if (machine.n_cpus == 1) break;
      }
    }
  }
}

void add_matmul(int64_t n_in, int64_t n_out, const std::vector<int64_t>& tokens) {
  add<MatMul>(fmt::format("{} to {}", n_in, n_out), tokens, [=](int64_t n) {
    auto x = std::make_shared<Activations>(n, n_in, Dtype::kBf16);
    auto y = std::make_shared<Activations>(n, n_out, Dtype::kF32);
    return [=] {
      return MatMul{.x = x->tensor(), .weight = weights().next(n_out, n_in), .y = y->view()};
    };
  });
}

// Tokens that chose experts in turn, so that each expert has as many as the next.
struct Chosen {
  std::vector<int32_t> begin, slots;

  Chosen(int64_t n_slots, int64_t n_experts) : begin{0} {
    for (int64_t e = 0; e < n_experts; ++e) {
      for (int64_t slot = e; slot < n_slots; slot += n_experts) slots.push_back(int32_t(slot));
      begin.push_back(int32_t(slots.size()));
    }
  }
};

template <typename Op>
void add_experts(int64_t d_model, int64_t d_ff, int64_t n_experts, int64_t per_token,
                 const std::vector<int64_t>& tokens) {
  add<Op>(
      fmt::format("{} of {} x {} to {}", per_token, n_experts, d_model, d_ff), tokens,
      [=](int64_t n) {
        auto experts = std::make_shared<std::vector<ExpertWeights>>();
        for (int64_t e = 0; e < n_experts; ++e)
          experts->push_back({weights().next(d_ff, d_model), weights().next(d_ff, d_model),
                              weights().next(d_model, d_ff)});
        auto chosen = std::make_shared<Chosen>(n * per_token, n_experts);
        auto x = std::make_shared<Activations>(n, d_model, Dtype::kBf16);
        auto act = std::make_shared<Activations>(n * per_token, d_ff, Dtype::kBf16);
        auto y = std::make_shared<Activations>(n * per_token, d_model, Dtype::kF32);
        return [=, first = int64_t{0}]() mutable {
          // Other experts each time, so that few tokens find them in memory.
          first = (first + 1) % n_experts;
          std::rotate(experts->begin(), experts->begin() + std::min(per_token, n_experts - 1),
                      experts->end());
          const auto begin = View<const int32_t, 1>::packed(chosen->begin.data(), {n_experts + 1});
          const auto slots = View<const int32_t, 1>::packed(chosen->slots.data(), {n * per_token});
          if constexpr (std::is_same_v<Op, ExpertUp>) {
            return ExpertUp{x->tensor(), *experts, begin, slots, per_token, act->tensor()};
          } else {
            return ExpertDown{act->tensor(), *experts, begin, slots, per_token, y->view()};
          }
        };
      });
}

// Pages of a sequence, one after another, and tokens at its end.
struct Context {
  std::vector<bf16> rows;
  std::vector<int32_t> table, position, sequence;
  PagedCache cache;

  Context(int64_t n_positions, int64_t width, int64_t n_tokens) {
    constexpr int64_t kPageSize = 64;
    const int64_t n_pages = (n_positions + kPageSize - 1) / kPageSize;
    std::mt19937 engine(3);
    for (int64_t i = 0; i < n_pages * kPageSize * width; ++i)
      rows.push_back({uint16_t(0x3c00 + engine() % 0x300 + (engine() % 2 << 15))});
    for (int64_t p = 0; p < n_pages; ++p) table.push_back(int32_t(p));
    for (int64_t t = 0; t < n_tokens; ++t) position.push_back(int32_t(n_positions - n_tokens + t));
    sequence.assign(size_t(n_tokens), 0);
    cache = {rows.data(), Dtype::kBf16, kPageSize * width * 2, kPageSize, width};
  }
  TokenPlaces places() const {
    return {View<const int32_t, 1>::packed(position.data(), {int64_t(position.size())}),
            View<const int32_t, 1>::packed(sequence.data(), {int64_t(position.size())}),
            View<const int32_t, 2>::packed(table.data(), {1, int64_t(table.size())})};
  }
};

void add_attention(int64_t n_heads, int64_t d_nope, int64_t d_v, int64_t n_keys,
                   const std::vector<int64_t>& tokens) {
  constexpr int64_t kRank = 512, kRope = 64;
  add<SparseMla>(fmt::format("{} heads, {} keys", n_heads, n_keys), tokens, [=](int64_t n) {
    auto context = std::make_shared<Context>(n_keys + n, kRank + kRope, n);
    auto q = std::make_shared<Activations>(n, n_heads * (d_nope + kRope), Dtype::kF32);
    auto o = std::make_shared<Activations>(n, n_heads * d_v, Dtype::kBf16);
    auto selected = std::make_shared<std::vector<int32_t>>();
    for (int64_t t = 0; t < n; ++t)
      for (int64_t s = 0; s < n_keys; ++s) selected->push_back(int32_t(s));
    return [=] {
      return SparseMla{
          .q = View<const float, 3>::packed(q->view().data, {n, n_heads, d_nope + kRope}),
          .kv_b = weights().next(n_heads * (d_nope + d_v), kRank),
          .cache = context->cache,
          .places = context->places(),
          .selected = View<const int32_t, 2>::packed(selected->data(), {n, n_keys}),
          .d_nope = d_nope,
          .d_rope = kRope,
          .d_v = d_v,
          .scale = 0.0625f,
          .o = o->tensor()};
    };
  });
}

void add_indexer(int64_t n_heads, int64_t n_positions, const std::vector<int64_t>& tokens) {
  constexpr int64_t kDim = 128, kTop = 2048;
  add<SelectKeys>(fmt::format("{} heads, {} keys", n_heads, n_positions), tokens, [=](int64_t n) {
    auto context = std::make_shared<Context>(n_positions, kDim, n);
    auto q = std::make_shared<Activations>(n, n_heads * kDim, Dtype::kF32);
    auto w = std::make_shared<Activations>(n, n_heads, Dtype::kF32);
    auto selected = std::make_shared<std::vector<int32_t>>(size_t(n * kTop));
    return [=] {
      return SelectKeys{.q = View<const float, 3>::packed(q->view().data, {n, n_heads, kDim}),
                        .weights = w->view(),
                        .keys = context->cache,
                        .places = context->places(),
                        .selected = View<int32_t, 2>::packed(selected->data(), {n, kTop}),
                        .max_context = n_positions};
    };
  });
}

void add_pointwise(int64_t n_columns, const std::vector<int64_t>& tokens) {
  add<RmsNorm>(fmt::format("{}", n_columns), tokens, [=](int64_t n) {
    auto x = std::make_shared<Activations>(n, n_columns, Dtype::kF32);
    auto y = std::make_shared<Activations>(n, n_columns, Dtype::kBf16);
    const Tensor<1> weight =
        Tensor<1>::packed(weights().next(1, n_columns).data, Dtype::kBf16, {n_columns});
    return [=] { return RmsNorm{x->view(), weight, 1e-5f, y->tensor()}; };
  });
  add<Rope>(fmt::format("{} in heads of 64", n_columns), tokens, [=](int64_t n) {
    auto x = std::make_shared<Activations>(n, n_columns, Dtype::kF32);
    auto table = std::make_shared<Activations>(n, 32, Dtype::kF32);
    return [=] {
      return Rope{View<float, 3>::packed(x->view().data, {n, n_columns / 64, 64}), table->view(),
                  table->view()};
    };
  });
}

void add_all() {
  const std::vector<int64_t> few = {1, 2, 4, 8, 16}, many = {1, 4, 16, 64, 512};
  add_matmul(1024, 1024, many);
  add_matmul(1024, 32768, {1, 4});
  add_matmul(6144, 2048, many);
  add_experts<ExpertUp>(1024, 768, 32, 4, many);
  add_experts<ExpertDown>(1024, 768, 32, 4, many);
  add_attention(16, 128, 128, 256, many);
  add_attention(16, 128, 128, 2048, few);
  add_attention(64, 192, 256, 2048, {1, 16});
  add_indexer(16, 16384, {1, 16});
  add_indexer(32, 131072, {1});
  add_pointwise(1024, {1, 512});
}

}  // namespace
}  // namespace bascule

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  bascule::add_all();
  for (const bascule::Peaks::Of& of : {bascule::peaks().one, bascule::peaks().all})
    fmt::print("{} thread(s): read {:.1f} GB/s, FMA {:.1f} GFLOP/s\n", of.n_threads,
               of.read_bytes_per_second / 1e9, of.fma_flops_per_second / 1e9);
  benchmark::RunSpecifiedBenchmarks();
}
