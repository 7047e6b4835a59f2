#include "model/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/json.h"
#include "support/temp_folder.h"
#include "support/toy_checkpoint.h"

namespace bascule {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr auto kGoOn = [](int64_t, int64_t) { return true; };

Inspection inspected(const ToyCheckpoint& toy, const InspectOptions& options = {}) {
  const TempFolder folder;
  toy.write(folder.path());
  auto inspection = inspect(folder.path(), options, kGoOn);
  EXPECT_TRUE(inspection.ok()) << inspection.status().message();
  return std::move(inspection).value();
}

Json json_of(const Inspection& inspection) {
  auto json = parse_json(inspection_json(inspection), "inspect --json");
  EXPECT_TRUE(json.ok()) << json.status().message();
  return std::move(json).value();
}

TEST(Inspect, PutsLikeTensorsOnOneLineAndAddsUp) {
  const auto inspection =
      inspect(std::string(BASCULE_TEST_DATA) + "/golden/glm-moe-dsa-tiny", {}, kGoOn);
  ASSERT_TRUE(inspection.ok()) << inspection.status().message();
  EXPECT_TRUE(inspection->is_sound());
  const std::string text = inspection_text(*inspection);
  EXPECT_THAT(text, HasSubstr("GlmMoeDsaForCausalLM (glm_moe_dsa)"));
  EXPECT_THAT(text, HasSubstr("model.layers.{2-5}.mlp.experts.{0-15}.down_proj.weight"));
  EXPECT_THAT(text, HasSubstr("64 x BF16 [128, 64]"));
  EXPECT_THAT(text, HasSubstr("model.layers.{0,1,3}.self_attn.indexer.wk.weight"));
  EXPECT_THAT(text, HasSubstr("290 of 290 tensors found, 0 skipped, 0 faults.\n"));
  EXPECT_THAT(text, HasSubstr("rope_interleave = true"));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("Faults")), Not(HasSubstr("Not finite"))));
  // 64 experts of 3 * 64 * 128 parameters.
  EXPECT_THAT(text, testing::ContainsRegex("experts +192 +1,572,864 +3,145,728  BF16\n"));
}

TEST(Inspect, HasOneJsonEntryATensor) {
  ToyCheckpoint toy;
  toy.tensors.erase("model.norm.weight");
  toy.tensors["extra"] = ToyTensor::of(Dtype::kI64, {3});
  toy.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = ToyTensor::of(Dtype::kF32, {2});
  const Json json = json_of(inspected(toy));
  EXPECT_EQ(json["tensors"].size(), toy.tensors.size() + 1);
  EXPECT_EQ(json["sound"], false);
  EXPECT_EQ(json["errors"], 2);
  EXPECT_EQ(json["skipped"], 1);
  EXPECT_EQ(json["total"]["tensors"], json["loaded"]);
  EXPECT_TRUE(json["non_finite"].is_null());
  std::map<std::string, Json> rows;
  for (const Json& t : json["tensors"]) rows[t["name"].get<std::string>()] = t;
  EXPECT_EQ(
      rows.at("extra").dump(),
      R"({"name":"extra","dtype":"I64","format":null,"shape":[3],"bytes":24,"file":"model.safetensors",)"
      R"("fate":"unknown","reason":"this model has no tensor of this name","part":null})");
  EXPECT_EQ(
      rows.at("model.norm.weight").dump(),
      R"({"name":"model.norm.weight","dtype":null,"format":null,"shape":[36],"bytes":0,"file":null,)"
      R"("fate":"missing","reason":"no file of the checkpoint holds it","part":"norms"})");
  EXPECT_EQ(
      rows.at("lm_head.weight").dump(),
      R"({"name":"lm_head.weight","dtype":"BF16","format":"BF16","shape":[50,36],"bytes":3600,)"
      R"("file":"model.safetensors","fate":"loaded","reason":null,"part":"head"})");
  int64_t bytes = 0;
  for (const auto& [part, total] : json["parts"].items()) bytes += total["bytes"].get<int64_t>();
  EXPECT_EQ(json["total"]["bytes"], bytes);
  EXPECT_EQ(json["eps"].dump(), R"({"norm":1e-05,"latent_norm":1e-05,"index_norm":1e-06})");
}

TEST(Inspect, NamesEveryFault) {
  ToyCheckpoint toy;
  toy.tensors.erase("model.norm.weight");
  toy.tensors["lm_head.weight"] = ToyTensor::of(Dtype::kBf16, {50, 35});
  toy.tensors["odd\x1b[2J"] = ToyTensor::of(Dtype::kU8, {1});
  const std::string text = inspection_text(inspected(toy));
  EXPECT_THAT(text, testing::ContainsRegex(
                        "lm_head.weight +1 x BF16 .50, 35. +wrong shape: .50, 36. expected\n"));
  EXPECT_THAT(text, testing::ContainsRegex("model.norm.weight +1 x .36. +missing: no file"));
  EXPECT_THAT(text, testing::ContainsRegex("odd.x1b.2J +1 x U8 .1. +unknown: "));
  EXPECT_THAT(text, HasSubstr("3 faults: this model does not load.\n"));
}

TEST(Inspect, NamesTensorsOneByOneWhereRangesWouldNameOthers) {
  ToyCheckpoint toy;
  toy.tensors.erase("model.layers.1.mlp.experts.3.up_proj.weight");
  toy.tensors.erase("model.layers.2.mlp.experts.0.up_proj.weight");
  EXPECT_THAT(inspection_text(inspected(toy)),
              AllOf(testing::ContainsRegex(
                        "model.layers.1.mlp.experts.3.up_proj.weight +1 x .7, 36. +missing"),
                    testing::ContainsRegex(
                        "model.layers.2.mlp.experts.0.up_proj.weight +1 x .7, 36. +missing")));
  toy.tensors.erase("model.layers.1.mlp.experts.0.up_proj.weight");
  toy.tensors.erase("model.layers.2.mlp.experts.3.up_proj.weight");
  EXPECT_THAT(
      inspection_text(inspected(toy)),
      HasSubstr("model.layers.{1,2}.mlp.experts.{0,3}.up_proj.weight  4 x [7, 36]  missing: "));
}

TEST(Inspect, ChecksValuesWhenAsked) {
  ToyCheckpoint toy;
  toy.tensors.at("model.norm.weight").set(3, std::numeric_limits<float>::infinity());
  EXPECT_TRUE(inspected(toy).is_sound());
  const Inspection checked = inspected(toy, {.check_values = true});
  EXPECT_FALSE(checked.is_sound());
  EXPECT_THAT(inspection_text(checked),
              AllOf(HasSubstr("tensor \"model.norm.weight\" in model.safetensors has inf at [3]"),
                    HasSubstr("0 faults, 1 with NaN or infinity.\n")));
  EXPECT_EQ(json_of(checked)["non_finite"].size(), 1u);
  EXPECT_TRUE(inspected(ToyCheckpoint(), {.check_values = true}).is_sound());
}

TEST(Inspect, ShowsTheEpsThatItWasGiven) {
  const Inspection inspection =
      inspected(ToyCheckpoint(), {.latent_norm_eps = 1e-6f, .index_norm_eps = 1e-7f});
  EXPECT_THAT(inspection_text(inspection),
              HasSubstr("norms 1e-05, latent norms 1e-06, index keys 1e-07"));
}

TEST(Inspect, FailsWhereThereIsNoModel) {
  const TempFolder folder;
  EXPECT_FALSE(inspect(folder.path(), {}, kGoOn).ok());
  ToyCheckpoint toy;
  toy.write(folder.path());
  std::filesystem::remove(folder.path() / "config.json");
  EXPECT_THAT(inspect(folder.path(), {}, kGoOn).status().message(),
              HasSubstr("config.json: cannot be opened: No such file"));
}

}  // namespace
}  // namespace bascule
