#include "model/load.h"

#include <gtest/gtest.h>

#include "support/temp_folder.h"

namespace bascule {
namespace {

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(BASCULE_TEST_DATA) / "golden" / name;
}

// A copy of the tiny checkpoint with one file changed.
std::filesystem::path copy_with(const TempFolder& folder, const std::string& file,
                                std::string_view text) {
  std::filesystem::copy(golden("glm-moe-dsa-tiny"), folder.path(),
                        std::filesystem::copy_options::recursive);
  folder.write(file, text);
  return folder.path();
}

TEST(LoadModel, OpensAFolderWithoutReadingWeights) {
  const auto model = load_model(golden("glm-moe-dsa-tiny")).value();
  EXPECT_EQ(model->config.n_layers, 6);
  EXPECT_EQ(model->weights.layers.size(), 6u);
  EXPECT_EQ(model->end_tokens, (std::vector<int32_t>{1}));
  EXPECT_EQ(model->config.latent_norm_eps, 1e-5f);
  EXPECT_GT(model->weight_bytes, 0);
  EXPECT_LE(model->weight_bytes,
            int64_t(std::filesystem::file_size(golden("glm-moe-dsa-tiny") / "model.safetensors")));
}

TEST(LoadModel, TakesWhatTheCallerKnowsBetter) {
  const auto model =
      load_model(golden("glm-moe-dsa-tiny"),
                 {.latent_norm_eps = 1e-6f, .index_norm_eps = 2e-6f, .max_positions = 20000})
          .value();
  EXPECT_EQ(model->config.latent_norm_eps, 1e-6f);
  EXPECT_EQ(model->config.index_norm_eps, 2e-6f);
  EXPECT_EQ(model->config.max_positions, 20000);
  EXPECT_EQ(load_model(golden("glm-moe-dsa-tiny"), {.latent_norm_eps = -1.0f}).status().message(),
            "--latent-norm-eps -1: between 0 and 1");
  EXPECT_EQ(load_model(golden("glm-moe-dsa-tiny"), {.index_norm_eps = 1.0f}).status().message(),
            "--k-norm-eps 1: between 0 and 1");
}

TEST(LoadModel, JoinsTheEndTokensOfBothConfigurations) {
  const TempFolder folder;
  const auto path = copy_with(folder, "generation_config.json", R"({"eos_token_id": [7, 1, 3]})");
  EXPECT_EQ(load_model(path).value()->end_tokens, (std::vector<int32_t>{1, 3, 7}));
  folder.write("generation_config.json", R"({"eos_token_id": 512})");
  EXPECT_EQ(load_model(path).status().message(),
            "generation_config.json: eos_token_id 512: this model's ids are from 0 to 511");
  std::filesystem::remove(path / "generation_config.json");
  EXPECT_EQ(load_model(path).value()->end_tokens, (std::vector<int32_t>{1}));
}

TEST(LoadModel, ReadsAheadUntilStopped) {
  const auto model = load_model(golden("glm-moe-dsa-tiny")).value();
  int64_t last = 0, total = 0;
  EXPECT_TRUE(model
                  ->read_ahead([&](int64_t done, int64_t all) {
                    last = done, total = all;
                    return true;
                  })
                  .ok());
  EXPECT_EQ(last, total);
  EXPECT_GE(total, model->weight_bytes);
  const Status stopped = model->read_ahead([](int64_t, int64_t) { return false; });
  EXPECT_EQ(stopped.code(), Code::kCancelled);
}

TEST(LoadModel, NamesAMissingFolder) {
  EXPECT_EQ(load_model("/nowhere/at/all").status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace bascule
