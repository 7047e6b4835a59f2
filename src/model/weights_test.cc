#include "model/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bascule {
namespace {

using testing::ElementsAre;

std::string golden(const std::string& name) {
  return std::string(BASCULE_TEST_DATA) + "/golden/" + name;
}

ModelConfig config_of(const Checkpoint& checkpoint) {
  const auto text = checkpoint.read_text("config.json");
  const auto config = parse_config(*text, "config.json");
  EXPECT_TRUE(config.ok()) << config.status().message();
  return *config;
}

TEST(Weights, LoadEveryTensorOfTheTinyCheckpoint) {
  const auto checkpoint = Checkpoint::open(golden("glm-moe-dsa-tiny"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const ModelConfig config = config_of(**checkpoint);
  const auto weights = load_weights(**checkpoint, config);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  EXPECT_EQ(weights->layers.size(), 6u);
  EXPECT_THAT(weights->embed.w.extent, ElementsAre(512, 128));
  EXPECT_FALSE(weights->has_draft);
  const LayerWeights& layer = weights->layers[3];
  EXPECT_TRUE(layer.is_sparse);
  EXPECT_TRUE(layer.owns_indexer);
  EXPECT_EQ(layer.experts.size(), 16u);
  EXPECT_THAT(layer.experts[15].down.w.extent, ElementsAre(128, 64));
  EXPECT_EQ(layer.router_bias.dtype, Dtype::kF32);
  EXPECT_FALSE(weights->layers[2].owns_indexer);
  EXPECT_EQ(weights->layers[2].indexer.wk.w.data, nullptr);

  const WeightsReport report = account(**checkpoint, config);
  EXPECT_EQ(report.n_expected, 290);
  EXPECT_EQ(report.n_loaded, 290);
  EXPECT_EQ(report.n_errors, 0);
}

}  // namespace
}  // namespace bascule
