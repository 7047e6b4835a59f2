#include "model/declared_formats.h"

#include <gtest/gtest.h>

namespace bascule {
namespace {

// https://github.com/sgl-project/sglang/pull/30265
// https://github.com/amd/Quark/issues/25
// Lists name modules as checkpoints do, by patterns, or as serving programs name the draft layer.
TEST(DeclaredFormats, FollowQuarksListInEveryNaming) {
  const auto declared = DeclaredFormats::parse(R"({"quantization_config": {
    "quant_method": "quark", "version": "0.13",
    "exclude": ["lm_head", "*.mlp.gate", "model.layers.3.mlp.experts.7.up_proj",
                "model.decoder.self_attn.o_proj", "model.eh_proj", "re:.*wk"],
    "global_quant_config": {"weight": {"dtype": "fp4", "qscheme": "per_group"}},
    "layer_quant_config": {
      "*self_attn*": {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_channel"}},
      "*odd*": {"weight": {"dtype": "int3", "qscheme": "per_group"}}}}})",
                                               78)
                            .value();
  EXPECT_EQ(declared.method(), "quark 0.13");
  using F = WeightFormat;
  EXPECT_EQ(declared.of("lm_head"), F::kBf16);
  EXPECT_EQ(declared.of("model.layers.5.mlp.gate"), F::kBf16);
  EXPECT_EQ(declared.of("model.layers.5.mlp.gate_proj"), F::kMxfp4);
  EXPECT_EQ(declared.of("model.layers.3.mlp.experts.7.up_proj"), F::kBf16);
  EXPECT_EQ(declared.of("model.layers.3.mlp.experts.17.up_proj"), F::kMxfp4);
  EXPECT_EQ(declared.of("model.layers.3.self_attn.o_proj"), F::kFp8Rows);
  EXPECT_EQ(declared.of("model.layers.78.self_attn.o_proj"), F::kBf16);
  EXPECT_EQ(declared.of("model.layers.78.eh_proj"), F::kBf16);
  EXPECT_EQ(declared.of("model.layers.78.mlp.experts.0.up_proj"), F::kMxfp4);
  EXPECT_EQ(declared.of("model.layers.2.odd"), std::nullopt);
}

TEST(DeclaredFormats, FollowTheOfficialFp8List) {
  const auto declared = DeclaredFormats::parse(R"({"quantization_config": {"quant_method": "fp8",
        "modules_to_not_convert": ["lm_head", "model.layers.0.self_attn.indexers_proj"]}})",
                                               4)
                            .value();
  EXPECT_EQ(declared.of("lm_head"), WeightFormat::kBf16);
  EXPECT_EQ(declared.of("model.layers.0.self_attn.o_proj"), WeightFormat::kFp8Blocks);
  EXPECT_EQ(declared.of("model.layers.0.self_attn.indexer.weights_proj"), WeightFormat::kFp8Blocks);
}

TEST(DeclaredFormats, SayNothingWhereNothingIsUnderstood) {
  for (const char* json :
       {"{}", R"({"quantization_config": null})", R"({"quantization_config": {}})",
        R"({"quantization_config": {"quant_method": "awq"}})",
        R"({"quantization_config": {"quant_method": 3, "exclude": 4}})",
        R"({"quantization_config": {"quant_method": "quark", "global_quant_config": []}})"})
    EXPECT_EQ(DeclaredFormats::parse(json, 4).value().of("lm_head"), std::nullopt) << json;
  EXPECT_FALSE(DeclaredFormats::parse("{", 4).ok());
}

}  // namespace
}  // namespace bascule
