#include "model/memory_plan.h"

#include <gtest/gtest.h>

namespace bascule {
namespace {

// The shape of GLM-5.2 as far as the cache is concerned: 78 layers, of which 21 own an indexer.
ModelConfig glm_shape() {
  ModelConfig c;
  c.n_layers = 78;
  c.kv_rank = 512, c.d_rope = 64, c.d_index = 128;
  c.owns_indexer.assign(78, false);
  for (int i = 0; i < 21; ++i) c.owns_indexer[i * 78 / 21] = true;
  return c;
}

// https://github.com/sgl-project/sglang/pull/11309: keys of the indexer belong to the budget, and
// only layers that own one have them. By hand, in bf16: 78 * 576 * 2 + 21 * 128 * 2.
TEST(MemoryPlan, CountsIndexKeysOfOwningLayers) {
  const KvLayout bf16(glm_shape(), Dtype::kBf16);
  EXPECT_EQ(bf16.token_bytes(), 89856 + 5376);
  EXPECT_EQ(bf16.token_bytes(), 95232);
  EXPECT_EQ(bf16.page_bytes(), 95232 * 16);
  EXPECT_EQ(KvLayout(glm_shape(), Dtype::kF32).token_bytes(), 2 * 95232);
  EXPECT_EQ(kv_token_formula(glm_shape(), Dtype::kBf16), "78 x 576 + 21 x 128 elements of BF16");
}

struct Inputs {
  ModelConfig config = glm_shape();
  KvLayout kv{config, Dtype::kBf16};
  MemoryInputs in{.available_bytes = int64_t{1} << 40,
                  .layout = {.tp = 2},
                  .weight_bytes = int64_t{100} << 30,
                  .kv = &kv,
                  .kv_formula = kv_token_formula(config, Dtype::kBf16),
                  .activations = {},
                  .activation_bytes = 3 << 20,
                  .n_workers = 8,
                  .scratch_bytes = [](int64_t context) { return context * 4; },
                  .vocab_size = 154880,
                  .max_positions = 1 << 20,
                  .max_requests = 4};
};

int64_t bytes_of(const MemoryPlan& plan, const std::string& name) {
  for (const MemoryPool& pool : plan.pools)
    if (pool.name == name) return pool.bytes;
  return -1;
}

TEST(MemoryPlan, GivesEveryPoolByItsFormula) {
  Inputs i;
  i.in.max_context = 1000;
  const MemoryPlan plan = plan_memory(i.in).value();
  EXPECT_EQ(plan.max_context, 1000);
  EXPECT_EQ(plan.n_pages, 250);  // four requests of 1000 tokens
  EXPECT_EQ(bytes_of(plan, "weights"), int64_t{100} << 30);
  EXPECT_EQ(bytes_of(plan, "KV cache"), int64_t{250} * 16 * 95232 * 2);
  EXPECT_EQ(bytes_of(plan, "activations"), 3 << 20);
  EXPECT_EQ(bytes_of(plan, "kernel scratch"), 8 * 4000);
  EXPECT_EQ(bytes_of(plan, "sampling"), 8 * 8 * 154880);
  EXPECT_EQ(bytes_of(plan, "page table"), 4 * 63 * 4);
  int64_t sum = 0;
  for (const MemoryPool& pool : plan.pools) sum += pool.bytes;
  EXPECT_EQ(plan.total_bytes(), sum);
  EXPECT_TRUE(plan.notices.empty());
  EXPECT_NE(plan.text().find("250 pages of 16 tokens x 95232 bytes (78 x 576 + 21 x 128 elements "
                             "of BF16), 2 rank(s)"),
            std::string::npos)
      << plan.text();
}

TEST(MemoryPlan, RefusesAContextThatDoesNotFitAndTellsTheLargest) {
  Inputs i;
  i.in.weight_bytes = 0;
  i.in.available_bytes = int64_t{1} << 30;
  i.in.max_context = 1 << 20;
  const Status refused = plan_memory(i.in).status();
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  // A token takes 2 * 95232 bytes of cache and 8 * 4 of scratch; 16 tokens another 4 * 4 of table.
  const int64_t left = (int64_t{1} << 30) - (128 << 20) - (3 << 20) - 8 * 8 * 154880;
  const int64_t fits = left / ((2 * 95232 + 32) * 16 + 16) * 16;
  EXPECT_EQ(refused.message(),
            "--max-model-len 1048576 needs 186.17 GiB and 1.00 GiB are available: the largest that "
            "fits is " +
                std::to_string(fits));
  i.in.max_context = fits;
  const MemoryPlan plan = plan_memory(i.in).value();
  EXPECT_EQ(plan.n_pages, fits / 16);  // one whole context, and no more
  EXPECT_LE(plan.total_bytes(), i.in.available_bytes);
}

TEST(MemoryPlan, NarrowsWhatNobodyAskedForAndSaysSo) {
  Inputs i;
  i.in.weight_bytes = 0;
  i.in.available_bytes = int64_t{1} << 30;
  const MemoryPlan plan = plan_memory(i.in).value();
  EXPECT_EQ(plan.max_context, 4848);
  ASSERT_EQ(plan.notices.size(), 1u);
  EXPECT_EQ(plan.notices[0],
            "context narrowed to 4848 of the model's 1048576 positions: 1.00 GiB are available");
}

TEST(MemoryPlan, TakesACacheOfTheSizeThatWasAsked) {
  Inputs i;
  i.in.max_context = 4096, i.in.kv_tokens = 1001;
  EXPECT_EQ(plan_memory(i.in).value().n_pages, 63);
}

TEST(MemoryPlan, RefusesWhatTheModelHasNotAndWhatIsTooLittle) {
  Inputs i;
  i.in.max_context = (1 << 20) + 1;
  EXPECT_EQ(plan_memory(i.in).status().message(),
            "--max-model-len 1048577: this model has 1048576 positions");
  i.in.max_context = 0;
  i.in.available_bytes = int64_t{1} << 30;  // the weights alone are 100
  EXPECT_EQ(plan_memory(i.in).status().code(), Code::kResourceExhausted);
  EXPECT_EQ(plan_memory(i.in).status().message().substr(0, 66),
            "100.14 GiB needed and 1.00 GiB available: not one page of context ");
}

}  // namespace
}  // namespace bascule
