#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/temp_folder.h"
#include "support/toy_checkpoint.h"

namespace bascule {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Fields = std::map<std::string, std::string>;

// The toy configuration with some fields changed; an empty value takes the field away.
std::string toy(const Fields& changes = {}) {
  ToyCheckpoint checkpoint;
  for (const auto& [field, value] : changes) {
    checkpoint.fields[field] = value;
    if (value.empty()) checkpoint.fields.erase(field);
  }
  return checkpoint.config_json();
}

ModelConfig parsed(const Fields& changes) {
  const auto config = parse_config(toy(changes), "config.json");
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? *config : ModelConfig();
}

std::string error_of(const Fields& changes) {
  const auto config = parse_config(toy(changes), "config.json");
  EXPECT_FALSE(config.ok()) << toy(changes);
  if (config.ok()) return "";
  EXPECT_THAT(config.status().message(), StartsWith("config.json: "));
  return config.status().message().substr(13);
}

std::string golden_config(const std::string& name) {
  return file_bytes(std::string(BASCULE_TEST_DATA) + "/golden/" + name + "/config.json");
}

// GLM-5.2 as its FP8 repository's config.json has it (docs/model.md), keys that say nothing to an
// engine left out.
Fields glm52() {
  return {{"vocab_size", "154880"},
          {"hidden_size", "6144"},
          {"num_hidden_layers", "78"},
          {"max_position_embeddings", "1048576"},
          {"num_attention_heads", "64"},
          {"q_lora_rank", "2048"},
          {"kv_lora_rank", "512"},
          {"qk_nope_head_dim", "192"},
          {"qk_rope_head_dim", "64"},
          {"qk_head_dim", "256"},
          {"v_head_dim", "256"},
          {"head_dim", "192"},
          {"rope_parameters", R"({"rope_theta": 8000000, "rope_type": "default"})"},
          {"index_n_heads", "32"},
          {"index_head_dim", "128"},
          {"index_topk", "2048"},
          {"indexer_types", ""},
          {"index_topk_freq", "4"},
          {"index_skip_topk_offset", "3"},
          {"index_topk_pattern", "null"},
          {"index_share_for_mtp_iteration", "true"},
          {"mlp_layer_types", ""},
          {"first_k_dense_replace", "3"},
          {"intermediate_size", "12288"},
          {"moe_intermediate_size", "2048"},
          {"n_routed_experts", "256"},
          {"num_experts_per_tok", "8"},
          {"eos_token_id", "[154820, 154827, 154829]"},
          {"pad_token_id", "154820"}};
}

Fields deepseek_v32() {
  return {{"architectures", R"(["DeepseekV32ForCausalLM"])"},
          {"model_type", R"("deepseek_v32")"},
          {"vocab_size", "129280"},
          {"hidden_size", "7168"},
          {"num_hidden_layers", "61"},
          {"max_position_embeddings", "163840"},
          {"rms_norm_eps", "1e-6"},
          {"num_attention_heads", "128"},
          {"q_lora_rank", "1536"},
          {"kv_lora_rank", "512"},
          {"qk_nope_head_dim", "128"},
          {"qk_rope_head_dim", "64"},
          {"v_head_dim", "128"},
          {"rope_parameters", ""},
          {"rope_theta", "10000"},
          {"rope_scaling", R"({"type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1,
                               "mscale": 1.0, "mscale_all_dim": 1.0,
                               "original_max_position_embeddings": 4096})"},
          {"index_n_heads", "64"},
          {"index_head_dim", "128"},
          {"index_topk", "2048"},
          {"indexer_types", ""},
          {"mlp_layer_types", ""},
          {"first_k_dense_replace", "3"},
          {"intermediate_size", "18432"},
          {"moe_intermediate_size", "2048"},
          {"n_routed_experts", "256"},
          {"num_experts_per_tok", "8"},
          {"n_group", "8"},
          {"topk_group", "4"}};
}

TEST(Config, ReadsTheGoldenCheckpoints) {
  const auto tiny = parse_config(golden_config("glm-moe-dsa-tiny"), "tiny");
  ASSERT_TRUE(tiny.ok()) << tiny.status().message();
  EXPECT_EQ(tiny->d_model, 128);
  EXPECT_EQ(tiny->d_qk(), 80);
  EXPECT_EQ(tiny->d_latent(), 96);
  EXPECT_EQ(tiny->rope_theta, 1e6);
  EXPECT_THAT(tiny->owns_indexer, ElementsAre(true, true, false, true, false, false));
  EXPECT_THAT(tiny->is_sparse, ElementsAre(false, false, true, true, true, true));
  EXPECT_EQ(tiny->n_index_layers(), 3);
  EXPECT_EQ(tiny->n_draft_layers, 0);
  EXPECT_THAT(tiny->eos_tokens, ElementsAre(1));
  EXPECT_EQ(tiny->pad_token, 0);
  const auto draft = parse_config(golden_config("glm-moe-dsa-calm-mtp"), "calm-mtp");
  ASSERT_TRUE(draft.ok()) << draft.status().message();
  EXPECT_EQ(draft->n_draft_layers, 1);
  EXPECT_TRUE(draft->index_share_for_draft_iteration);
}

TEST(Config, ReadsGlm52) {
  const ModelConfig c = parsed(glm52());
  EXPECT_EQ(c.softmax_scale(), 1.0 / 16);
  EXPECT_EQ(c.norm_eps, 1e-5f);
  EXPECT_EQ(c.latent_norm_eps, 1e-5f);
  EXPECT_EQ(c.index_norm_eps, 1e-6f);
  EXPECT_TRUE(c.rope_interleaved);
  EXPECT_TRUE(c.index_rope_interleaved);
  EXPECT_FALSE(c.yarn.has_value());
  EXPECT_THAT(c.eos_tokens, ElementsAre(154820, 154827, 154829));
  // The generating rule gives the 21 owners that the published list names.
  std::vector<int64_t> owners, dense;
  for (int64_t i = 0; i < 78; ++i) {
    if (c.owns_indexer[i]) owners.push_back(i);
    if (!c.is_sparse[i]) dense.push_back(i);
  }
  EXPECT_THAT(owners, ElementsAre(0, 1, 2, 6, 10, 14, 18, 22, 26, 30, 34, 38, 42, 46, 50, 54, 58,
                                  62, 66, 70, 74));
  EXPECT_THAT(dense, ElementsAre(0, 1, 2));
}

TEST(Config, ReadsDeepSeekV32) {
  const ModelConfig c = parsed(deepseek_v32());
  EXPECT_TRUE(c.rope_interleaved);
  EXPECT_FALSE(c.index_rope_interleaved);
  EXPECT_EQ(c.latent_norm_eps, 1e-6f);
  EXPECT_EQ(c.n_index_layers(), 61);
  EXPECT_EQ(c.n_expert_groups, 8);
  EXPECT_EQ(c.n_active_expert_groups, 4);
  ASSERT_TRUE(c.yarn.has_value());
  EXPECT_EQ(c.yarn->factor, 40);
  EXPECT_EQ(c.yarn->original_max_positions, 4096);
  const double mscale = 0.1 * std::log(40.0) + 1;  // 1.3689
  EXPECT_DOUBLE_EQ(c.softmax_scale(), mscale * mscale / std::sqrt(192.0));
  // As transformers 5 writes it: all in rope_parameters.
  Fields nested = deepseek_v32();
  nested["rope_parameters"] = R"({"rope_theta": 10000, "rope_type": "yarn", "factor": 40,
      "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096})";
  nested["rope_theta"] = nested["rope_scaling"] = "";
  EXPECT_DOUBLE_EQ(parsed(nested).softmax_scale(), c.softmax_scale());
  Fields without_groups = deepseek_v32();
  without_groups["n_group"] = "";
  EXPECT_EQ(error_of(without_groups), "n_group is missing; a whole number from 1 is wanted");
}

TEST(Config, ListsTheKeysThatTookADefault) {
  const ModelConfig c = parsed({{"indexer_rope_interleave", "false"}});
  EXPECT_FALSE(c.index_rope_interleaved);  // an explicit key wins
  EXPECT_THAT(c.defaulted,
              AllOf(Contains("rope_interleave = true"), Contains("scoring_func = sigmoid"),
                    Contains("n_group = 1"), Contains("tie_word_embeddings = false"),
                    Contains("hidden_act = silu"), Not(Contains(HasSubstr("indexer_rope")))));
  EXPECT_THAT(parsed({}).defaulted, Contains("indexer_rope_interleave = true"));
  EXPECT_THAT(parsed({{"num_nextn_predict_layers", ""}}).defaulted,
              Contains("num_nextn_predict_layers = 0"));
}

TEST(Config, TakesIndexerOwnersFromTheListThePatternOrTheRule) {
  const Fields all = {{"indexer_types", R"(["full", "full", "shared", "shared", "full"])"},
                      {"index_topk_pattern", R"("FSSF")"},
                      {"index_topk_freq", "2"}};
  const auto owners = [&](std::vector<std::string> absent) {
    Fields fields = all;
    for (const std::string& field : absent) fields[field] = "";
    return parsed(fields).owns_indexer;
  };
  EXPECT_THAT(owners({}), ElementsAre(true, true, false, false));
  EXPECT_THAT(owners({"indexer_types"}), ElementsAre(true, false, false, true));
  // The rule with its default offset of 2: max(i - 1, 0) divisible by 2.
  EXPECT_THAT(owners({"indexer_types", "index_topk_pattern"}),
              ElementsAre(true, true, false, true));
  EXPECT_THAT(owners({"indexer_types", "index_topk_pattern", "index_topk_freq"}),
              ElementsAre(true, true, true, true));
  // A list for fewer layers is not this model's; it is said.
  const ModelConfig c =
      parsed({{"indexer_types", R"(["full"])"}, {"index_topk_pattern", "\"FFSS\""}});
  EXPECT_THAT(c.owns_indexer, ElementsAre(true, true, false, false));
  EXPECT_THAT(c.defaulted, Contains("indexer_types has 1 entries for 4 layers and is not used"));
}

TEST(Config, RefusesMalformedIndexerOwners) {
  EXPECT_EQ(error_of({{"indexer_types", R"(["shared", "full", "full", "full"])"}}),
            "layer 0 shares an indexer, and there is no layer before it: its type must be full");
  EXPECT_EQ(error_of({{"indexer_types", R"(["full", "none", "full", "full"])"}}),
            "indexer_types[1] is \"none\"; \"full\" or \"shared\" is wanted");
  EXPECT_EQ(error_of({{"indexer_types", R"(["full", 1, "full", "full"])"}}),
            "indexer_types[1] is the number 1; a string is wanted");
  EXPECT_EQ(error_of({{"indexer_types", "\"full\""}}),
            "indexer_types is the string \"full\"; a list is wanted");
  EXPECT_THAT(error_of({{"indexer_types", ""}, {"index_topk_pattern", "\"FFS\""}}),
              HasSubstr("3 characters for 4 layers"));
  EXPECT_THAT(error_of({{"indexer_types", ""}, {"index_topk_pattern", "\"FxSS\""}}),
              HasSubstr("only F (full) and S (shared)"));
  EXPECT_THAT(error_of({{"indexer_types", ""}, {"index_topk_freq", "0"}}),
              HasSubstr("index_topk_freq is 0"));
}

TEST(Config, PrefersTheListOfLayerKindsToTheCount) {
  EXPECT_THAT(parsed({{"first_k_dense_replace", "3"}}).is_sparse,
              ElementsAre(false, true, true, true));
  EXPECT_THAT(parsed({{"mlp_layer_types", ""}, {"first_k_dense_replace", "1"}}).is_sparse,
              ElementsAre(false, true, true, true));
  EXPECT_THAT(
      parsed({{"mlp_layer_types", ""}, {"first_k_dense_replace", "1"}, {"moe_layer_freq", "2"}})
          .is_sparse,
      ElementsAre(false, false, true, false));
  EXPECT_EQ(error_of({{"mlp_layer_types", ""}}),
            "first_k_dense_replace is missing; a whole number from 0 is wanted");
  EXPECT_EQ(error_of({{"mlp_layer_types", R"(["dense"])"}}),
            "mlp_layer_types has 1 entries for 4 layers");
}

// https://github.com/sgl-project/sglang-jax/issues/1384
TEST(Config, FindsRopeThetaWhereverItStands) {
  const auto theta = [](const char* nested, const char* top) {
    return Fields{{"rope_parameters", nested}, {"rope_theta", top}};
  };
  EXPECT_EQ(parsed(theta(R"({"rope_type": "default", "rope_theta": 8e6})", "")).rope_theta, 8e6);
  EXPECT_EQ(parsed(theta("", "1e6")).rope_theta, 1e6);
  EXPECT_EQ(parsed(theta(R"({"rope_type": "default"})", "5000")).rope_theta, 5000);
  EXPECT_EQ(error_of(theta(R"({"rope_type": "default", "rope_theta": 8e6})", "10000")),
            "rope_theta is 8000000 in rope_parameters and 10000 at the top level");
  EXPECT_THAT(error_of(theta(R"({"rope_type": "default"})", "")),
              HasSubstr("rope_theta is missing; a number, in rope_parameters or at the top level"));
  EXPECT_THAT(error_of(theta("", "\"1e6\"")), HasSubstr("the string \"1e6\"; a number is wanted"));
  EXPECT_THAT(error_of(theta("", "0")), HasSubstr("rope_theta is 0"));
  EXPECT_THAT(error_of(theta("", "0.5")), HasSubstr("at least 1 is wanted"));
}

TEST(Config, TakesScalingFromEitherKeyAndRefusesTwoMinds) {
  const char* yarn = R"({"type": "yarn", "factor": 4, "original_max_position_embeddings": 64})";
  const auto both = [](const char* parameters, const char* scaling) {
    return Fields{
        {"rope_parameters", parameters}, {"rope_scaling", scaling}, {"rope_theta", "1e4"}};
  };
  EXPECT_EQ(parsed(both(yarn, yarn)).yarn->factor, 4);
  EXPECT_EQ(parsed(both("", yarn)).yarn->factor, 4);
  EXPECT_FALSE(parsed(both("null", R"({"type": "default"})")).yarn.has_value());
  EXPECT_THAT(error_of(both(R"({"rope_type": "default"})", yarn)), HasSubstr("scale differently"));
  const ModelConfig silent = parsed({{"rope_parameters", R"({"rope_theta": 1e4})"}});
  EXPECT_THAT(silent.defaulted, Contains("rope_type = default"));
}

TEST(Config, RefusesRopesThatItDoesNotTurn) {
  const auto error_with = [](const char* rope) { return error_of({{"rope_parameters", rope}}); };
  EXPECT_EQ(
      error_with(R"({"rope_type": "linear", "factor": 2, "rope_theta": 1e4})"),
      "rope_parameters: rope_type is \"linear\"; only \"default\" and \"yarn\" are supported");
  EXPECT_THAT(error_with(R"({"rope_theta": 1e4, "factor": 4})"),
              HasSubstr("rope_type is missing; \"yarn\", since there is a factor"));
  EXPECT_THAT(error_with("[]"), HasSubstr("rope_parameters: a list of 0; an object is wanted"));
  const auto yarn = [&](const std::string& more) {
    return error_with((R"({"rope_type": "yarn", "rope_theta": 1e4)" + more + "}").c_str());
  };
  EXPECT_THAT(yarn(""), HasSubstr("factor is missing"));
  EXPECT_THAT(yarn(R"(, "factor": 4)"), HasSubstr("original_max_position_embeddings is missing"));
  EXPECT_THAT(yarn(R"(, "factor": 0.5, "original_max_position_embeddings": 64)"),
              HasSubstr("factor is 0.5; at least 1 is wanted"));
  EXPECT_THAT(yarn(R"(, "factor": 4, "original_max_position_embeddings": 64, "beta_slow": 33)"),
              HasSubstr("beta_slow is 33 and beta_fast 32"));
  EXPECT_THAT(yarn(R"(, "factor": 4, "original_max_position_embeddings": 64,
                        "attention_factor": 1.2)"),
              HasSubstr("attention_factor is set"));
}

TEST(Config, RefusesOtherFamiliesByNameAndSaysWhatItRuns) {
  for (const char* type : {"glm5_next", "deepseek_v3", "llama", "glm4_moe"})
    EXPECT_THAT(
        error_of({{"model_type", "\"" + std::string(type) + "\""}}),
        AllOf(HasSubstr("model_type is \"" + std::string(type) +
                        "\", which this program "
                        "does not run"),
              HasSubstr("\"glm_moe_dsa\" (GLM-5, 5.1, 5.2, 5.3)"), HasSubstr("\"deepseek_v32\"")));
  EXPECT_THAT(error_of({{"model_type", ""}}), HasSubstr("model_type is missing"));
  EXPECT_THAT(error_of({{"architectures", R"(["GlmMoeDsaForSequenceClassification"])"}}),
              HasSubstr("only \"GlmMoeDsaForCausalLM\" is supported"));
  EXPECT_THAT(error_of({{"architectures", "[]"}}), HasSubstr("a list of one name is wanted"));
}

TEST(Config, RefusesArithmeticThatItDoesNotCompute) {
  const std::vector<std::pair<Fields, std::string>> cases = {
      {{{"hidden_act", "\"gelu\""}}, "hidden_act is \"gelu\"; only \"silu\" is supported"},
      {{{"attention_bias", "true"}}, "attention_bias is true; only false is supported"},
      {{{"scoring_func", "\"softmax\""}},
       "scoring_func is \"softmax\"; only \"sigmoid\" is supported"},
      {{{"topk_method", "\"greedy\""}},
       "topk_method is \"greedy\"; only \"noaux_tc\" is supported"},
      {{{"moe_router_dtype", "\"bfloat16\""}},
       "moe_router_dtype is \"bfloat16\"; the router is computed in \"float32\""},
      {{{"mlp_bias", "true"}}, "mlp_bias is true; only false is supported"},
      {{{"swiglu_limit", "10"}},
       "swiglu_limit is the number 10; activations without a clamp are supported"},
  };
  for (const auto& [fields, message] : cases) EXPECT_EQ(error_of(fields), message);
}

TEST(Config, NamesEveryCountThatIsMissingWrongOrAbsurd) {
  for (const char* field : {"vocab_size",
                            "hidden_size",
                            "num_hidden_layers",
                            "max_position_embeddings",
                            "num_attention_heads",
                            "q_lora_rank",
                            "kv_lora_rank",
                            "qk_nope_head_dim",
                            "qk_rope_head_dim",
                            "v_head_dim",
                            "index_n_heads",
                            "index_head_dim",
                            "index_topk",
                            "intermediate_size",
                            "moe_intermediate_size",
                            "n_routed_experts",
                            "num_experts_per_tok",
                            "n_shared_experts",
                            "rms_norm_eps",
                            "routed_scaling_factor"}) {
    const std::string name = field;
    EXPECT_THAT(error_of({{name, ""}}), StartsWith(name + " is missing; "));
    EXPECT_THAT(error_of({{name, "null"}}), StartsWith(name + " is missing; "));
    EXPECT_THAT(error_of({{name, "\"7\""}}), StartsWith(name + " is the string \"7\"; "));
    EXPECT_THAT(error_of({{name, "[7]"}}), StartsWith(name + " is a list of 1; "));
    EXPECT_THAT(error_of({{name, "-1"}}), StartsWith(name + " is -1; "));
    EXPECT_THAT(error_of({{name, "1000000000000000000"}}), StartsWith(name + " is 1"));
    if (name == "n_shared_experts") continue;  // none is legal
    EXPECT_THAT(error_of({{name, "0"}}), StartsWith(name + " is 0"));
  }
  EXPECT_EQ(error_of({{"num_hidden_layers", "4.5"}}),
            "num_hidden_layers is the number 4.5; a whole number is wanted");
  EXPECT_EQ(error_of({{"num_nextn_predict_layers", "2"}}),
            "num_nextn_predict_layers is 2; a whole number from 0 to 1 is wanted");
}

TEST(Config, NamesCountsThatContradictEachOther) {
  EXPECT_THAT(error_of({{"qk_rope_head_dim", "3"}}), HasSubstr("an even number is wanted"));
  EXPECT_THAT(error_of({{"qk_head_dim", "12"}}),
              HasSubstr("qk_head_dim is 12; qk_nope_head_dim + qk_rope_head_dim is 10"));
  EXPECT_THAT(error_of({{"index_head_dim", "2"}}), HasSubstr("below qk_rope_head_dim 4"));
  EXPECT_THAT(error_of({{"num_experts_per_tok", "6"}}), HasSubstr("above n_routed_experts 5"));
  EXPECT_THAT(error_of({{"n_group", "2"}}), HasSubstr("does not divide n_routed_experts 5"));
  EXPECT_THAT(error_of({{"n_routed_experts", "6"}, {"n_group", "2"}, {"topk_group", "3"}}),
              HasSubstr("topk_group is 3, above n_group 2"));
  EXPECT_THAT(error_of({{"n_group", "5"}, {"topk_group", "5"}}), HasSubstr("each needs two"));
  EXPECT_THAT(error_of({{"n_routed_experts", "6"}, {"n_group", "3"}, {"num_experts_per_tok", "3"}}),
              HasSubstr("the 1 groups that topk_group keeps have 2 experts"));
  EXPECT_THAT(error_of({{"num_hidden_layers", "4096"},
                        {"n_routed_experts", "16384"},
                        {"indexer_types", ""},
                        {"mlp_layer_types", ""},
                        {"first_k_dense_replace", "1"}}),
              HasSubstr("num_hidden_layers 4096 times n_routed_experts 16384"));
}

TEST(Config, ReadsSpecialTokens) {
  EXPECT_THAT(parsed({{"eos_token_id", "7"}}).eos_tokens, ElementsAre(7));
  EXPECT_TRUE(parsed({{"eos_token_id", "null"}}).eos_tokens.empty());
  EXPECT_EQ(parsed({{"pad_token_id", "-1"}}).pad_token, std::nullopt);
  EXPECT_EQ(error_of({{"eos_token_id", "[1, 50]"}}),
            "eos_token_id has 50; token ids go from 0 to 49");
  EXPECT_THAT(error_of({{"eos_token_id", "\"</s>\""}}), HasSubstr("a whole number is wanted"));
  EXPECT_THAT(error_of({{"pad_token_id", "50"}}), HasSubstr("pad_token_id is 50"));
}

TEST(Config, RefusesWhatIsNotAJsonObject) {
  const auto error = [](std::string_view text) {
    return parse_config(text, "config.json").status().message();
  };
  EXPECT_THAT(error("[]"), HasSubstr("config.json: a list of 0; an object is wanted"));
  EXPECT_THAT(error("{"), HasSubstr("config.json: not valid JSON"));
  EXPECT_THAT(error(R"({"hidden_size": 1, "hidden_size": 2})"), HasSubstr("stands twice"));
  EXPECT_THAT(error(std::string(1'000'000, '[')), HasSubstr("nested deeper"));
}

TEST(Config, IsAnErrorAndNoCrashWhereverItIsCut) {
  const std::string text = golden_config("glm-moe-dsa-tiny");
  for (size_t n = 0; n + 2 < text.size(); ++n)
    EXPECT_FALSE(parse_config(text.substr(0, n), "config.json").ok()) << n;
}

TEST(GenerationConfig, ReadsWhatIsThere) {
  const auto d = parse_generation_config(
      R"({"temperature": 1.0, "top_p": 0.95, "eos_token_id": [154820, 154827], "do_sample": true})",
      "generation_config.json");
  ASSERT_TRUE(d.ok()) << d.status().message();
  EXPECT_EQ(d->temperature, 1.0f);
  EXPECT_EQ(d->top_p, 0.95f);
  EXPECT_EQ(d->top_k, std::nullopt);
  EXPECT_EQ(d->min_p, std::nullopt);
  EXPECT_THAT(d->eos_tokens, ElementsAre(154820, 154827));
}

TEST(GenerationConfig, NamesTheFieldThatIsWrong) {
  const auto error = [](std::string_view text) {
    return parse_generation_config(text, "g.json").status().message();
  };
  EXPECT_EQ(error(R"({"temperature": -1})"),
            "g.json: temperature is -1; a number from 0 to 100 is wanted");
  EXPECT_THAT(error(R"({"top_p": "0.9"})"), HasSubstr("top_p is the string \"0.9\""));
  EXPECT_THAT(error(R"({"top_k": 1.5})"), HasSubstr("top_k is the number 1.5"));
  EXPECT_THAT(error(R"({"top_k": -1})"), HasSubstr("top_k is -1"));
  EXPECT_THAT(error(R"({"eos_token_id": [-1]})"), HasSubstr("eos_token_id has -1"));
  EXPECT_THAT(error("7"), HasSubstr("g.json: the number 7"));
}

}  // namespace
}  // namespace bascule
