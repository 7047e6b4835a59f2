#include "engine/setup.h"

#include <gtest/gtest.h>

#include "format/safetensors.h"
#include "support/listeners.h"

namespace bascule {
namespace {

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(BASCULE_TEST_DATA) / "golden" / name;
}

std::unique_ptr<LoadedModel> load_tiny() {
  return load_model(golden("glm-moe-dsa-tiny"), {.latent_norm_eps = 1e-6f, .index_norm_eps = 1e-6f})
      .value();
}

std::vector<int32_t> expected_tokens(const std::string& tensor) {
  const auto file =
      SafetensorsFile::open(golden("glm-moe-dsa-tiny") / "reference.safetensors").value();
  const SafetensorsEntry* entry = file.find(tensor);
  const auto* data = static_cast<const int32_t*>(file.data(*entry));
  return {data, data + entry->size_bytes / 4};
}

TEST(Setup, RunsTheGreedyContinuationOfTheReference) {
  const auto model = load_tiny();
  const auto setup =
      plan_engine(*model, {.n_threads = 1, .kernels = KernelMode::kReference}).value();
  const auto engine = make_engine(*model, setup).value();
  const std::vector<int32_t> expected = expected_tokens("generated");
  Answer answer;
  ASSERT_TRUE(engine
                  ->submit({.prompt = {expected.begin(), expected.begin() + 40},
                            .max_tokens = 48,
                            .ignore_eos = true,
                            .sampling = greedy()},
                           std::make_unique<KeepingListener>(answer))
                  .ok());
  engine->run_until_idle();
  EXPECT_EQ(answer.tokens, std::vector<int32_t>(expected.begin() + 40, expected.end()));
}

TEST(Setup, ResolvesWhatNobodyChose) {
  const auto model = load_tiny();
  const EngineSetup reference = plan_engine(*model, {.kernels = KernelMode::kReference}).value();
  EXPECT_EQ(reference.options.activations, Dtype::kF32);
  EXPECT_EQ(reference.options.kv_dtype, Dtype::kF32);
  EXPECT_GE(reference.options.n_threads, 1);
  EXPECT_EQ(reference.options.max_context, 4096);
  EXPECT_EQ(reference.options.max_logit_rows, 64);
  const EngineSetup fast = plan_engine(*model, {.max_requests = 2}).value();
  EXPECT_EQ(fast.options.activations, Dtype::kBf16);
  EXPECT_EQ(fast.options.kv_dtype, Dtype::kBf16);
  EXPECT_EQ(fast.memory.n_pages, 2 * 4096 / 16);
  const EngineSetup mixed = plan_engine(*model, {.kv_dtype = Dtype::kF32}).value();
  EXPECT_EQ(mixed.options.activations, Dtype::kBf16);
  EXPECT_EQ(mixed.ranks[0]->kv_layout().dtype(), Dtype::kF32);
}

// https://github.com/sgl-project/sglang/pull/11309: what is printed is what is taken.
TEST(Setup, CountsTheBytesThatTheRanksTake) {
  const auto model = load_tiny();
  const EngineSetup setup =
      plan_engine(*model, {.layout = {.tp = 3}, .kv_tokens = 1000, .max_requests = 4}).value();
  int64_t activations = 0, weights = 0;
  for (const auto& rank : setup.ranks) activations += rank->activation_bytes();
  for (const auto& [name, tensor] : model->checkpoint->tensors()) weights += tensor.size_bytes;
  const auto bytes_of = [&](const std::string& name) {
    for (const MemoryPool& pool : setup.memory.pools)
      if (pool.name == name) return pool.bytes;
    return int64_t{-1};
  };
  EXPECT_EQ(bytes_of("activations"), activations);
  EXPECT_EQ(bytes_of("weights"), weights);  // every tensor of this checkpoint is loaded
  // 6 layers of 64 + 32 and 3 of 64 elements, in bf16: 1536 bytes a token.
  EXPECT_EQ(setup.memory.kv_token_bytes, (6 * 96 + 3 * 64) * 2);
  EXPECT_EQ(bytes_of("KV cache"), 63 * 16 * 1536 * 3);
}

TEST(Setup, RefusesWhatCannotWork) {
  const auto model = load_tiny();
  const auto message = [&](const EngineOptions& options) {
    const auto setup = plan_engine(*model, options);
    return setup.ok() ? "" : setup.status().message();
  };
  EXPECT_EQ(message({.max_context = 5000}), "--max-model-len 5000: this model has 4096 positions");
  EXPECT_EQ(message({.max_batch_tokens = 8}),
            "with --max-num-seqs 64: --max-batch-tokens 8: 64 at least");
  EXPECT_EQ(message({.max_requests = 0}), "--max-num-seqs 0: 1 at least");
  EXPECT_EQ(message({.n_threads = -1}), "--threads -1: 0 at least");
  EXPECT_EQ(message({.activations = Dtype::kF16}), "--activations F16: F32 or BF16");
  EXPECT_EQ(message({.kv_dtype = Dtype::kF8E4m3}), "--kv-cache-dtype F8_E4M3: F32 or BF16");
  EXPECT_EQ(message({.layout = {.tp = 5}}),
            "--tp 5: this model can be cut in at most 4 (4 attention heads)");
  EXPECT_NE(message({.cpu_target = "z80"}).find("z80"), std::string::npos);
}

// 16 requests with the same 200 tokens that arrive together, in a cache that reads as NaN where
// nothing was written (https://github.com/vllm-project/vllm/pull/37152).
TEST(Setup, EqualPromptsThatArriveTogetherGetEqualAnswers) {
  const auto model = load_tiny();
  const EngineSetup setup = plan_engine(*model, {.n_threads = 1,
                                                 .kernels = KernelMode::kFast,
                                                 .max_context = 256,
                                                 .max_batch_tokens = 300,
                                                 .poisons_pages = true})
                                .value();
  const auto engine = make_engine(*model, setup).value();
  RequestSpec spec{.max_tokens = 4, .ignore_eos = true, .sampling = greedy()};
  for (int i = 0; i < 200; ++i) spec.prompt.push_back(i * 37 % 512);
  std::vector<Answer> answers(16);
  for (Answer& a : answers)
    ASSERT_TRUE(engine->submit(spec, std::make_unique<KeepingListener>(a)).ok());
  engine->run_until_idle();
  for (const Answer& a : answers) {
    EXPECT_EQ(a.end->reason, EndReason::kLength);
    EXPECT_EQ(a.tokens, answers[0].tokens);
  }
}

}  // namespace
}  // namespace bascule
