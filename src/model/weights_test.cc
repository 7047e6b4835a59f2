#include "model/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/temp_folder.h"
#include "support/toy_checkpoint.h"
#include "tensor/quant/fp8_block.h"
#include "tensor/quant/mxfp4.h"

namespace bascule {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A toy checkpoint on disk, opened.
struct Opened {
  explicit Opened(const ToyCheckpoint& toy) : config(toy.config()) {
    toy.write(folder.path());
    auto opened = Checkpoint::open(folder.path());
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    checkpoint = std::move(opened).value();
  }
  WeightsReport report() const { return account(*checkpoint, config); }
  Result<ModelWeights> load() const { return load_weights(*checkpoint, config); }
  std::string error() const {
    const auto weights = load();
    EXPECT_FALSE(weights.ok());
    return weights.ok() ? "" : weights.status().message();
  }

  TempFolder folder;
  ModelConfig config;
  std::unique_ptr<Checkpoint> checkpoint;
};

const TensorReport& row(const WeightsReport& report, const std::string& name) {
  for (const TensorReport& t : report.tensors)
    if (t.name == name) return t;
  ADD_FAILURE() << name << " has no row";
  return report.tensors.front();
}

// Gives the toy's tensors another name: those that begin with `from` begin with `to`.
void rename(ToyCheckpoint& toy, const std::string& from, const std::string& to) {
  std::map<std::string, ToyTensor> renamed;
  for (auto& [name, tensor] : toy.tensors)
    renamed.emplace(name.starts_with(from) ? to + name.substr(from.size()) : name,
                    std::move(tensor));
  toy.tensors = std::move(renamed);
}

TEST(Weights, LoadEveryTensorOfTheGoldenCheckpoints) {
  for (const std::string name : {"glm-moe-dsa-tiny", "glm-moe-dsa-calm"}) {
    const auto checkpoint = Checkpoint::open(std::string(BASCULE_TEST_DATA) + "/golden/" + name);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    const auto config = parse_config(*(*checkpoint)->read_text("config.json"), name);
    const auto weights = load_weights(**checkpoint, *config);
    ASSERT_TRUE(weights.ok()) << weights.status().message();
    const WeightsReport report = account(**checkpoint, *config);
    EXPECT_EQ(report.n_loaded, static_cast<int64_t>((*checkpoint)->tensors().size()));
    EXPECT_EQ(report.n_expected, report.n_loaded);
    EXPECT_THAT(weights->notices,
                ElementsAre("not part of the model, not read: \"reference.safetensors\""));
  }
}

TEST(Weights, PutEachTensorInItsPlace) {
  const ToyCheckpoint toy;
  const Opened opened(toy);
  const auto weights = opened.load();
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  const auto data = [&](const std::string& name) { return opened.checkpoint->find(name)->data; };
  EXPECT_EQ(weights->embed.data, data("model.embed_tokens.weight"));
  EXPECT_EQ(weights->head.w.codes, data("lm_head.weight"));
  EXPECT_EQ(weights->norm.data, data("model.norm.weight"));
  const LayerWeights& sparse = weights->layers[2];
  EXPECT_EQ(sparse.attention.q_b.w.codes, data("model.layers.2.self_attn.q_b_proj.weight"));
  EXPECT_EQ(sparse.attention.q_b.w.n_out, 3 * 10);
  EXPECT_EQ(sparse.attention.q_b.w.n_in, 12);
  EXPECT_EQ(sparse.attention.kv_a.w.n_out, 14);
  EXPECT_EQ(sparse.attention.kv_a.w.n_in, 36);
  EXPECT_EQ(sparse.attention.kv_b.w.n_out, 3 * 11);
  EXPECT_EQ(sparse.attention.kv_b.w.n_in, 10);
  EXPECT_EQ(sparse.experts[4].up.w.codes, data("model.layers.2.mlp.experts.4.up_proj.weight"));
  EXPECT_EQ(sparse.shared.down.w.codes, data("model.layers.2.mlp.shared_experts.down_proj.weight"));
  EXPECT_EQ(sparse.router_bias.data, data("model.layers.2.mlp.gate.e_score_correction_bias"));
  EXPECT_EQ(sparse.indexer.k_norm_bias.data, data("model.layers.2.self_attn.indexer.k_norm.bias"));
  EXPECT_FALSE(weights->layers[1].owns_indexer);
  EXPECT_FALSE(weights->layers[0].is_sparse);
  EXPECT_EQ(weights->layers[0].dense.gate.w.codes, data("model.layers.0.mlp.gate_proj.weight"));
  EXPECT_TRUE(weights->has_draft);
  EXPECT_EQ(weights->draft.eh_proj.w.codes, data("model.layers.4.eh_proj.weight"));
  EXPECT_EQ(weights->draft.head_norm.data, data("model.layers.4.shared_head.norm.weight"));
  EXPECT_TRUE(weights->draft.layer.owns_indexer);
  EXPECT_EQ(weights->draft.layer.experts.size(), 5u);
}

TEST(Weights, AcceptF16AndF32EverywhereAndModelsWithoutSharedExperts) {
  ToyCheckpoint toy;
  toy.fields["n_shared_experts"] = "0";
  toy.fill();
  auto& norm = toy.tensors.at("model.norm.weight");
  norm = ToyTensor::of(Dtype::kF32, norm.shape);
  auto& head = toy.tensors.at("lm_head.weight");
  head = ToyTensor::of(Dtype::kF16, head.shape);
  const auto weights = Opened(toy).load();
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  EXPECT_EQ(weights->norm.dtype, Dtype::kF32);
  EXPECT_EQ(weights->head.w.format, WeightFormat::kF16);
  EXPECT_FALSE(weights->layers[2].shared.gate.w);
}

// Parameters of GLM-5.2 by part, as docs/model.md derives them from the published headers.
TEST(Weights, TableHasThePublishedSizeOfGlm52) {
  ModelConfig c;
  c.vocab_size = 154880;
  c.d_model = 6144;
  c.n_layers = 78;
  c.n_draft_layers = 1;
  c.n_heads = 64;
  c.q_rank = 2048;
  c.kv_rank = 512;
  c.d_nope = 192;
  c.d_rope = 64;
  c.d_v = 256;
  c.n_index_heads = 32;
  c.d_index = 128;
  c.d_dense = 12288;
  c.d_expert = 2048;
  c.n_experts = 256;
  c.n_shared_experts = 1;
  for (int i = 0; i < 78; ++i) {
    c.owns_indexer.push_back(i < 3 || i % 4 == 2);
    c.is_sparse.push_back(i >= 3);
  }
  std::map<std::string_view, int64_t> parameters;
  int64_t n_bias = 0;
  const auto tensors = expected_tensors(c);
  for (const ExpectedTensor& t : tensors)
    (t.keeps_f32 ? n_bias : parameters[t.part]) += t.n_elements();
  EXPECT_EQ(tensors.size(), 59'585u);
  EXPECT_EQ(parameters["embedding"], 951'582'720);
  EXPECT_EQ(parameters["head"], 951'582'720);
  EXPECT_EQ(parameters["attention"], 12'871'532'544);
  EXPECT_EQ(parameters["indexer"], 196'809'984);
  EXPECT_EQ(parameters["dense"], 679'477'248);
  EXPECT_EQ(parameters["router"], 117'964'800);
  EXPECT_EQ(parameters["experts"], 724'775'731'200);
  EXPECT_EQ(parameters["shared experts"], 2'831'155'200);
  EXPECT_EQ(parameters["norms"], 1'164'288);
  EXPECT_EQ(parameters["draft"], 9'952'920'320);
  EXPECT_EQ(n_bias, 19'456);
}

// https://github.com/ml-explore/mlx-lm/issues/1418
// https://github.com/ROCm/ATOM/pull/1260
// https://github.com/ggml-org/llama.cpp/pull/25407
TEST(Weights, NeedIndexersOnFullLayersAndSkipThemOnSharedOnes) {
  ToyCheckpoint toy;
  EXPECT_THAT(Opened(toy).report().notices, IsEmpty());

  ToyCheckpoint lacking = toy;
  lacking.tensors.erase("model.layers.2.self_attn.indexer.wk.weight");
  EXPECT_THAT(
      Opened(lacking).error(),
      HasSubstr("tensor \"model.layers.2.self_attn.indexer.wk.weight\" [8, 36] is missing"));

  for (const char* part :
       {"wq_b.weight", "wk.weight", "k_norm.weight", "k_norm.bias", "weights_proj.weight"}) {
    const std::string indexer = std::string("self_attn.indexer.") + part;
    toy.tensors["model.layers.1." + indexer] = toy.tensors.at("model.layers.0." + indexer);
  }
  const Opened copied(toy);
  const auto weights = copied.load();
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  EXPECT_FALSE(weights->layers[1].owns_indexer);
  EXPECT_FALSE(weights->layers[1].indexer.wk.w);
  EXPECT_THAT(weights->notices,
              ElementsAre("5 tensors skipped (\"model.layers.1.self_attn.indexer.k_norm.bias\", "
                          "...): this layer shares the indexer of an earlier one"));
  EXPECT_EQ(copied.report().n_skipped, 5);
  toy.tensors["model.layers.1.self_attn.indexer.other.weight"] =
      toy.tensors.at("model.layers.0.self_attn.indexer.wk.weight");
  EXPECT_THAT(Opened(toy).error(), HasSubstr("\"model.layers.1.self_attn.indexer.other.weight\""));
}

TEST(Weights, GoWithoutTheDraftLayerWhenAllOfItIsAbsent) {
  ToyCheckpoint toy;
  std::erase_if(toy.tensors, [](const auto& t) { return t.first.starts_with("model.layers.4."); });
  const auto weights = Opened(toy).load();
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  EXPECT_FALSE(weights->has_draft);
  EXPECT_TRUE(weights->draft.layer.experts.empty());
  EXPECT_THAT(weights->notices, ElementsAre(HasSubstr("no tensor of layer 4: drafting is off")));

  ToyCheckpoint part;
  part.tensors.erase("model.layers.4.hnorm.weight");
  EXPECT_THAT(Opened(part).error(),
              HasSubstr("tensor \"model.layers.4.hnorm.weight\" [36] is missing"));
}

TEST(Weights, SkipTheDraftLayerThatTheConfigDoesNotName) {
  ToyCheckpoint toy;
  toy.fields["num_nextn_predict_layers"] = "0";
  const Opened opened(toy);
  const auto weights = opened.load();
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  EXPECT_FALSE(weights->has_draft);
  EXPECT_THAT(weights->notices,
              ElementsAre(HasSubstr("draft layer: config.json has no num_nextn_predict_layers")));
  EXPECT_EQ(row(opened.report(), "model.layers.4.enorm.weight").fate, "skipped");
}

TEST(Weights, SkipTheDraftLayersOwnCopiesOfEmbeddingAndHead) {
  ToyCheckpoint toy;
  toy.tensors["model.layers.4.embed_tokens.weight"] = toy.tensors.at("model.embed_tokens.weight");
  toy.tensors["model.layers.4.shared_head.head.weight"] = toy.tensors.at("lm_head.weight");
  toy.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = ToyTensor::of(Dtype::kF32, {2});
  const Opened opened(toy);
  ASSERT_TRUE(opened.load().ok()) << opened.load().status().message();
  EXPECT_EQ(opened.report().n_skipped, 3);
  EXPECT_EQ(row(opened.report(), "model.layers.4.embed_tokens.weight").reason,
            "the draft layer uses the model's embedding");
  toy.tensors["model.layers.4.embed_tokens.weight"] = ToyTensor::of(Dtype::kBf16, {50, 35});
  EXPECT_THAT(Opened(toy).error(),
              HasSubstr("\"model.layers.4.embed_tokens.weight\", BF16 [50, 35]"));
}

// https://github.com/vllm-project/vllm/pull/32101
TEST(Weights, RefuseAnFp8WeightWithoutItsScale) {
  ToyCheckpoint toy;
  const std::string name = "model.layers.4.mlp.experts.0.down_proj.weight";
  toy.tensors[name] = ToyTensor::of(Dtype::kF8E4m3, {36, 7});
  EXPECT_THAT(Opened(toy).error(), AllOf(HasSubstr("F8_E4M3 [36, 7]"), HasSubstr("wrong type"),
                                         HasSubstr(name + "_scale_inv, F32")));
  toy.tensors[name + "_scale_inv"] = ToyTensor::of(Dtype::kF32, {2, 1});  // of another shape
  EXPECT_THAT(Opened(toy).error(), HasSubstr("faults: 1 wrong type, 1 unknown"));
}

TEST(Weights, RefuseFormatsThatAreNotRead) {
  ToyCheckpoint toy;
  const std::string name = "model.layers.4.mlp.experts.0.down_proj.weight";
  toy.tensors[name] = ToyTensor::of(Dtype::kI8, {36, 7});
  EXPECT_THAT(Opened(toy).error(), HasSubstr("I8 is not read by this version"));
  toy.tensors[name] = ToyTensor::of(Dtype::kU8, {36, 4});
  EXPECT_THAT(Opened(toy).error(), AllOf(HasSubstr("wrong type"), HasSubstr("MXFP4"),
                                         HasSubstr(name + "_scale, U8 [36, 1]")));
  toy.tensors[name] = ToyTensor::of(Dtype::kU8, {36, 7});
  toy.tensors[name + "_scale"] = ToyTensor::of(Dtype::kU8, {36, 1});
  EXPECT_THAT(Opened(toy).error(), AllOf(HasSubstr("wrong shape"), HasSubstr("[36, 4] expected")));
  toy.tensors["model.embed_tokens.weight"] = ToyTensor::of(Dtype::kF8E4m3, {50, 36});
  EXPECT_THAT(Opened(toy).error(), HasSubstr("F8_E4M3 is not read here"));
}

// The toy's expert matrix in one block format, each weight as the scalar decoders have it.
TEST(Weights, StayInTheirBlockFormat) {
  const std::string tensor = "model.layers.4.mlp.experts.0.down_proj.weight";
  struct Stored {
    WeightFormat format;
    Dtype codes;
    int64_t row_bytes;
    std::string suffix;
    Dtype scales;
    std::vector<int64_t> scale_shape;
  };
  const Stored cases[] = {
      {WeightFormat::kFp8Blocks, Dtype::kF8E4m3, 7, "_scale_inv", Dtype::kF32, {1, 1}},
      {WeightFormat::kFp8Rows, Dtype::kF8E4m3, 7, "_scale", Dtype::kF32, {36}},
      {WeightFormat::kFp8Rows, Dtype::kF8E4m3, 7, "_scale", Dtype::kBf16, {36, 1}},
      {WeightFormat::kMxfp4, Dtype::kU8, 4, "_scale", Dtype::kU8, {36, 1}},
      {WeightFormat::kMxfp4, Dtype::kU8, 4, "_scale", Dtype::kF8E8m0, {36, 1}},
  };
  for (const Stored& c : cases) {
    ToyCheckpoint toy;
    toy.tensors[tensor] = ToyTensor::of(c.codes, {36, c.row_bytes});
    for (size_t i = 0; i < toy.tensors[tensor].bytes.size(); ++i)
      toy.tensors[tensor].bytes[i] = static_cast<char>(i * 5 % 127);  // no NaN
    toy.tensors[tensor + c.suffix] = ToyTensor::of(c.scales, c.scale_shape);
    ToyTensor& scales = toy.tensors[tensor + c.suffix];
    for (size_t i = 0; i < scales.bytes.size(); ++i)
      scales.bytes[i] = static_cast<char>(0x3e + i % 2);  // finite whatever the type
    const Opened opened(toy);
    ASSERT_EQ(opened.report().n_errors, 0) << name(c.format);
    EXPECT_EQ(row(opened.report(), tensor).format, name(c.format));
    EXPECT_EQ(row(opened.report(), tensor).n_parameters, 36 * 7);
    EXPECT_EQ(row(opened.report(), tensor + c.suffix).fate, "loaded");
    EXPECT_EQ(row(opened.report(), tensor + c.suffix).n_parameters, 0);
    const auto weights = opened.load();
    ASSERT_TRUE(weights.ok()) << weights.status().message();
    const WeightMatrix& w = weights->draft.layer.experts[0].down.w;
    EXPECT_EQ(w.format, c.format);
    const StoredTensor& codes = *opened.checkpoint->find(tensor);
    EXPECT_EQ(w.codes, codes.data);
    const StoredTensor& scale = *opened.checkpoint->find(tensor + c.suffix);
    for (int64_t r = 0; r < 36; ++r) {
      const auto* bytes = static_cast<const uint8_t*>(codes.data) + r * c.row_bytes;
      const int64_t i = scale.n_elements() == 1 ? 0 : r;
      const float s = c.codes == Dtype::kU8 ? e8m0_value(static_cast<const uint8_t*>(scale.data)[i])
                                            : load(scale.data, scale.dtype, i);
      for (int64_t k = 0; k < 7; ++k)
        ASSERT_EQ(w(r, k), s * (c.codes == Dtype::kU8 ? e2m1_value(mxfp4_code(bytes, k))
                                                      : fp8_e4m3_value(bytes[k])));
    }
  }
}

// A scale that is no number would poison every sum it meets.
// https://github.com/paiml/aprender/pull/2187
// https://github.com/vllm-project/compressed-tensors/pull/523
TEST(Weights, RefuseScalesThatAreNotFinite) {
  const std::string name = "model.layers.2.mlp.experts.0.down_proj.weight";
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    ToyCheckpoint toy;
    toy.tensors[name] = ToyTensor::of(Dtype::kF8E4m3, {36, 7});
    toy.tensors[name + "_scale"] = ToyTensor::of(Dtype::kF32, {36});
    toy.tensors[name + "_scale"].set(35, bad);
    EXPECT_THAT(Opened(toy).error(),
                AllOf(HasSubstr(name + "_scale"), HasSubstr("column 35"), HasSubstr("damaged")));
  }
  ToyCheckpoint toy;
  toy.tensors[name] = ToyTensor::of(Dtype::kU8, {36, 4});
  toy.tensors[name + "_scale"] = ToyTensor::of(Dtype::kU8, {36, 1});
  for (const uint8_t good : {0, 254}) {
    toy.tensors[name + "_scale"].bytes[3] = static_cast<char>(good);
    EXPECT_TRUE(Opened(toy).load().ok()) << int(good);
  }
  toy.tensors[name + "_scale"].bytes[3] = static_cast<char>(255);
  EXPECT_THAT(Opened(toy).error(), AllOf(HasSubstr(name + "_scale"), HasSubstr("row 3")));
}

// https://github.com/vllm-project/vllm/pull/32101: scales skipped by their suffix, and a draft
// model without them. A scale that nothing uses is named; one that is needed is missed.
TEST(Weights, NameAScaleThatNothingUses) {
  ToyCheckpoint toy;
  toy.tensors["lm_head.weight_scale"] = ToyTensor::of(Dtype::kF32, {50});
  const Opened opened(toy);
  ASSERT_EQ(opened.report().n_errors, 0);
  EXPECT_EQ(row(opened.report(), "lm_head.weight_scale").fate, "skipped");
  EXPECT_THAT(row(opened.report(), "lm_head.weight_scale").reason,
              HasSubstr("which has no scales"));
  EXPECT_THAT(opened.load()->notices, testing::Contains(HasSubstr("lm_head.weight_scale")));
  toy.tensors["model.layers.9.mlp.gate_proj.weight_scale"] = ToyTensor::of(Dtype::kF32, {50});
  EXPECT_THAT(Opened(toy).error(), HasSubstr("unknown"));
}

// https://github.com/jundot/omlx/issues/2326
// https://github.com/sgl-project/sglang/pull/39317
TEST(Weights, TrustTheTensorsWhereConfigJsonDisagreesAndSaySoOnce) {
  ToyCheckpoint toy;
  toy.fields["quantization_config"] =
      R"({"quant_method": "fp8", "modules_to_not_convert": ["lm_head", "model.eh_proj"]})";
  const auto weights = Opened(toy).load();
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  EXPECT_THAT(weights->notices,
              ElementsAre(AllOf(HasSubstr("the stored types are trusted"), HasSubstr("is BF16"),
                                HasSubstr("config.json has it as FP8 128x128"))));
  toy.fields["quantization_config"] = R"({"quant_method": "fp8", "modules_to_not_convert": ["*"]})";
  EXPECT_THAT(Opened(toy).load()->notices, IsEmpty());
}

TEST(Weights, RefuseAWeightWithTwoKindsOfScales) {
  ToyCheckpoint toy;
  const std::string name = "model.layers.2.mlp.experts.0.down_proj.weight";
  toy.tensors[name] = ToyTensor::of(Dtype::kF8E4m3, {36, 7});
  toy.tensors[name + "_scale"] = ToyTensor::of(Dtype::kF32, {36});
  toy.tensors[name + "_scale_inv"] = ToyTensor::of(Dtype::kF32, {1, 1});
  EXPECT_THAT(Opened(toy).error(), HasSubstr("can't be told"));
}

// https://github.com/sgl-project/sglang/pull/37133
// https://github.com/sgl-project/sglang/pull/31213
// https://github.com/vllm-project/vllm/pull/50761
TEST(Weights, KeepTheRoutersBiasInF32FromFileToSelection) {
  ToyCheckpoint toy;
  const std::string name = "model.layers.2.mlp.gate.e_score_correction_bias";
  auto& bias = toy.tensors.at(name);
  for (int i = 0; i < 5; ++i) bias.set(i, 6.82f + static_cast<float>(i) * 0.00095f);
  const Opened opened(toy);
  const auto weights = opened.load();
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(weights->layers[2].router_bias.as<const float>()(i),
              6.82f + static_cast<float>(i) * 0.00095f);
  bias = ToyTensor::of(Dtype::kBf16, {5});
  EXPECT_THAT(Opened(toy).error(),
              AllOf(HasSubstr(name + "\", BF16 [5]"), HasSubstr("F32 expected"),
                    HasSubstr("change which experts are chosen")));
}

// https://github.com/NVIDIA/TensorRT-LLM/pull/13664
// https://github.com/QwenLM/Qwen3-VL-Embedding/issues/89
// https://github.com/vllm-project/vllm/pull/6758
TEST(Weights, TieTheHeadByTheConfigAndNotByWhatIsMissing) {
  const auto toy = [](bool tied, bool has_head) {
    ToyCheckpoint t;
    t.fields["tie_word_embeddings"] = tied ? "true" : "false";
    t.tensors["lm_head.weight"] = t.tensors.at("model.embed_tokens.weight");
    if (!has_head) t.tensors.erase("lm_head.weight");
    return t;
  };
  EXPECT_THAT(Opened(toy(false, false)).error(),
              HasSubstr("tensor \"lm_head.weight\" [50, 36] is missing"));
  const Opened untied(toy(false, true));
  EXPECT_EQ(untied.load()->head.w.codes, untied.checkpoint->find("lm_head.weight")->data);

  const Opened tied(toy(true, false));
  const auto weights = tied.load();
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  EXPECT_EQ(weights->head.w.codes, weights->embed.data);
  EXPECT_THAT(weights->notices, IsEmpty());

  const auto redundant = Opened(toy(true, true)).load();
  ASSERT_TRUE(redundant.ok()) << redundant.status().message();
  EXPECT_EQ(redundant->head.w.codes, redundant->embed.data);
  EXPECT_THAT(redundant->notices, ElementsAre(HasSubstr("1 tensor skipped (\"lm_head.weight\")")));

  ToyCheckpoint different = toy(true, true);
  different.tensors.at("lm_head.weight").set(7, 3);
  const auto warned = Opened(different).load();
  ASSERT_TRUE(warned.ok());
  EXPECT_THAT(warned->notices,
              testing::Contains(HasSubstr("lm_head.weight differs from the embedding")));
}

// https://github.com/sgl-project/sglang/pull/38616
TEST(Weights, RefuseOtherLayoutsByTheFirstUnknownName) {
  ToyCheckpoint stacked;
  std::erase_if(stacked.tensors, [](const auto& t) {
    return t.first.find("layers.2.mlp.experts.") != std::string::npos;
  });
  ToyCheckpoint separate = stacked;
  stacked.tensors["model.layers.2.mlp.experts.gate_up_proj"] =
      ToyTensor::of(Dtype::kBf16, {5, 14, 36});
  stacked.tensors["model.layers.2.mlp.experts.down_proj"] = ToyTensor::of(Dtype::kBf16, {5, 36, 7});
  EXPECT_THAT(Opened(stacked).error(),
              AllOf(HasSubstr("tensor \"model.layers.2.mlp.experts.down_proj\", BF16 [5, 36, 7]"),
                    HasSubstr("experts stacked in one tensor; one tensor an expert is read"),
                    HasSubstr("faults: 2 unknown, 15 missing")));

  separate.tensors["model.layers.2.mlp.experts.gate_proj.weight"] =
      ToyTensor::of(Dtype::kBf16, {5, 7, 36});
  EXPECT_THAT(Opened(separate).error(),
              HasSubstr("tensor \"model.layers.2.mlp.experts.gate_proj.weight\", BF16 [5, 7, 36]"));

  ToyCheckpoint renamed;
  rename(renamed, "model.layers.4.", "model.decoder.");
  EXPECT_THAT(Opened(renamed).error(), HasSubstr("tensor \"model.decoder.eh_proj.weight\""));
  ToyCheckpoint prefixed;
  rename(prefixed, "model.", "model.language_model.");
  EXPECT_THAT(
      Opened(prefixed).error(),
      AllOf(HasSubstr("tensor \"model.language_model.embed_tokens.weight\""), HasSubstr("(1 of ")));
}

TEST(Weights, NameTensorsThatHaveNoPlace) {
  ToyCheckpoint toy;
  toy.tensors["model.layers.9.enorm.weight"] = ToyTensor::of(Dtype::kBf16, {36});
  EXPECT_THAT(Opened(toy).error(),
              HasSubstr("\"model.layers.9.enorm.weight\", BF16 [36] in "
                        "model.safetensors: unknown: config.json has 4 layers"));
  toy.tensors.erase("model.layers.9.enorm.weight");
  for (const char* name : {"model.layers.-1.x", "model.layers.99999999999999999999.x",
                           "model.layers.1", "model.layers..x", "", "x"}) {
    ToyCheckpoint odd = toy;
    odd.tensors[name] = ToyTensor::of(Dtype::kU8, {1});
    EXPECT_THAT(Opened(odd).error(), HasSubstr("this model has no tensor of this name")) << name;
  }
}

TEST(Weights, NameWrongShapesWithWhatWasExpected) {
  ToyCheckpoint toy;
  const std::string name = "model.layers.3.mlp.experts.2.up_proj.weight";
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{36, 7}, {7, 35}, {252}, {7, 36, 1}, {}, {0, 36}}) {
    toy.tensors[name] = ToyTensor::of(Dtype::kBf16, shape);
    EXPECT_THAT(Opened(toy).error(),
                AllOf(HasSubstr("tensor \"" + name + "\", BF16 ["), HasSubstr("[7, 36] expected")));
  }
}

TEST(Weights, ReportHasOneRowATensorWithItsFate) {
  ToyCheckpoint toy;
  toy.tensors.erase("model.norm.weight");
  toy.tensors["extra"] = ToyTensor::of(Dtype::kI64, {3});
  const WeightsReport report = Opened(toy).report();
  EXPECT_EQ(report.tensors.size(), toy.tensors.size() + 1);
  EXPECT_TRUE(std::is_sorted(report.tensors.begin(), report.tensors.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
  EXPECT_EQ(report.n_errors, 2);
  EXPECT_EQ(report.n_loaded, static_cast<int64_t>(toy.tensors.size()) - 1);
  EXPECT_EQ(report.n_expected, report.n_loaded + 1);
  const TensorReport& missing = row(report, "model.norm.weight");
  EXPECT_EQ(missing.fate, "missing");
  EXPECT_THAT(missing.shape, ElementsAre(36));
  const TensorReport& extra = row(report, "extra");
  EXPECT_EQ(extra.fate, "unknown");
  EXPECT_EQ(extra.dtype, "I64");
  EXPECT_EQ(extra.size_bytes, 24);
  const TensorReport& loaded = row(report, "model.layers.1.self_attn.o_proj.weight");
  EXPECT_EQ(loaded.fate, "loaded");
  EXPECT_EQ(loaded.part, "attention");
  EXPECT_EQ(loaded.file, "model.safetensors");
  EXPECT_EQ(row(report, "model.layers.4.self_attn.o_proj.weight").part, "draft");
}

constexpr auto kGoOn = [](int64_t, int64_t) { return true; };

// https://github.com/paiml/aprender/pull/2187
TEST(NonFinite, IsFoundAnywhereInAnyTypeAndNamed) {
  ToyCheckpoint toy;
  auto& embed = toy.tensors.at("model.embed_tokens.weight");  // BF16 [50, 36]
  embed.set(50 * 36 - 1, std::numeric_limits<float>::quiet_NaN());
  auto& bias = toy.tensors.at("model.layers.1.mlp.gate.e_score_correction_bias");  // F32 [5]
  bias.set(0, -std::numeric_limits<float>::infinity());
  auto& norm = toy.tensors.at("model.norm.weight");
  norm = ToyTensor::of(Dtype::kF16, {36});
  norm.set(17, std::numeric_limits<float>::infinity());
  norm.set(30, std::numeric_limits<float>::infinity());  // only the first of each is told
  const Opened opened(toy);
  const auto found = find_non_finite(*opened.checkpoint, opened.config, kGoOn);
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(*found,
              ElementsAre("tensor \"model.embed_tokens.weight\" in model.safetensors has nan "
                          "at [49, 35]",
                          "tensor \"model.layers.1.mlp.gate.e_score_correction_bias\" in "
                          "model.safetensors has -inf at [0]",
                          "tensor \"model.norm.weight\" in model.safetensors has inf at [17]"));
}

TEST(NonFinite, PassesLargestAndSmallestNumbers) {
  ToyCheckpoint toy;
  auto& embed = toy.tensors.at("model.embed_tokens.weight");
  embed.set(0, 3.38e38f);
  embed.set(1, -3.38e38f);
  embed.set(2, 1e-40f);
  const Opened opened(toy);
  EXPECT_THAT(*find_non_finite(*opened.checkpoint, opened.config, kGoOn), IsEmpty());
}

TEST(NonFinite, TellsItsProgressAndStopsWhenAsked) {
  const Opened opened{ToyCheckpoint()};
  int64_t last = 0, total = 0;
  const auto watch = [&](int64_t done, int64_t all) {
    EXPECT_GT(done, last);
    last = done;
    total = all;
    return true;
  };
  ASSERT_TRUE(find_non_finite(*opened.checkpoint, opened.config, watch).ok());
  EXPECT_EQ(last, total);
  EXPECT_GT(total, 0);
  const auto stop = [](int64_t, int64_t) { return false; };
  EXPECT_EQ(find_non_finite(*opened.checkpoint, opened.config, stop).status().code(),
            Code::kCancelled);
}

}  // namespace
}  // namespace bascule
