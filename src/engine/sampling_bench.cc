// What one draw costs over a large vocabulary: ./engine_bench --benchmark_filter=Sample
#include <benchmark/benchmark.h>

#include <random>

#include "engine/sampling.h"

namespace bascule {
namespace {

constexpr int64_t kVocab = 154880;  // GLM-5.2's

void run(benchmark::State& state, const SamplingParams& params) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(kVocab);
  for (float& x : logits) x = normal(random);
  const std::vector<int32_t> prompt(1000, 7);
  const Sampler sampler(params, 1, prompt, kVocab, kVocab);
  SamplingScratch scratch(kVocab);
  const auto row = View<const float, 1>::packed(logits.data(), {kVocab});
  int64_t position = 0;
  for (auto _ : state) benchmark::DoNotOptimize(sampler.sample(row, position++, {}, scratch));
  state.SetBytesProcessed(state.iterations() * kVocab * int64_t{sizeof(float)});
}

BENCHMARK_CAPTURE(run, SampleGreedy, SamplingParams{.temperature = 0});
BENCHMARK_CAPTURE(run, SampleTemperature, SamplingParams{});
BENCHMARK_CAPTURE(run, SampleTopP, SamplingParams{.top_p = 0.95f});
BENCHMARK_CAPTURE(run, SampleTopKTopP, SamplingParams{.top_k = 40, .top_p = 0.95f});
BENCHMARK_CAPTURE(run, SampleMinP, SamplingParams{.min_p = 0.05f});
BENCHMARK_CAPTURE(run, SampleLogprobs,
                  SamplingParams{.temperature = 0, .logprobs = true, .top_logprobs = 20});

}  // namespace
}  // namespace bascule
