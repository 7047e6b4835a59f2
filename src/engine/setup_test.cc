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

}  // namespace
}  // namespace bascule
