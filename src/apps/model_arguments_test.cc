#include "apps/model_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bascule {
namespace {

using testing::HasSubstr;

const std::string kTiny = std::string(BASCULE_TEST_DATA) + "/golden/glm-moe-dsa-tiny";

Options parse(std::vector<std::string> arguments) {
  const std::string commands[] = {"run"};
  arguments.insert(arguments.begin(), "run");
  return parse_command_line(arguments, {}, commands).value().options;
}

TEST(ResolveModel, AFolderIsItself) { EXPECT_EQ(*resolve_model(kTiny), kTiny); }

TEST(ResolveModel, WithoutANameItIsTheDemoModel) {
  const auto folder = resolve_model("").value();
  EXPECT_TRUE(std::filesystem::exists(folder / "config.json"));
  EXPECT_EQ(folder.filename(), "demo");
}

TEST(EngineOptions, FollowTheOptions) {
  const auto model = load_model(kTiny).value();
  const EngineOptions o = engine_options(parse({"--tp",
                                                "2",
                                                "--dp",
                                                "2",
                                                "--threads",
                                                "3",
                                                "--kernels",
                                                "fast",
                                                "--activations",
                                                "f32",
                                                "--kv-cache-dtype",
                                                "bf16",
                                                "--max-model-len",
                                                "100",
                                                "--max-num-seqs",
                                                "7",
                                                "--max-num-batched-tokens",
                                                "33",
                                                "--cpu-target",
                                                "avx2"}),
                                         model->config)
                              .value();
  EXPECT_EQ(o.layout.tp, 2);
  EXPECT_EQ(o.layout.dp, 2);
  EXPECT_EQ(o.n_threads, 3);
  EXPECT_EQ(o.kernels, KernelMode::kFast);
  EXPECT_EQ(o.activations, Dtype::kF32);
  EXPECT_EQ(o.kv_dtype, Dtype::kBf16);
  EXPECT_EQ(o.max_context, 100);
  EXPECT_EQ(o.max_requests, 7);
  EXPECT_EQ(o.max_batch_tokens, 33);
  EXPECT_EQ(o.cpu_target, "avx2");
}

// 6 latents of 96 and 3 keys of 64 are 768 elements a token: 49152 bytes a page of 16 in F32.
TEST(EngineOptions, CacheBytesAreWholePagesOfAllRanks) {
  const auto model = load_model(kTiny).value();
  const auto tokens = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--activations", "f32"});
    return engine_options(parse(arguments), model->config);
  };
  EXPECT_EQ(tokens({"--kv-cache-bytes", "49152"})->kv_tokens, 16);
  EXPECT_EQ(tokens({"--kv-cache-bytes", "1MiB"})->kv_tokens, 21 * 16);
  EXPECT_EQ(tokens({"--kv-cache-bytes", "1MiB", "--tp", "2"})->kv_tokens, 10 * 16);
  EXPECT_EQ(tokens({"--kv-cache-bytes", "1MiB", "--kv-cache-dtype", "bf16"})->kv_tokens, 42 * 16);
  EXPECT_EQ(tokens({"--kv-cache-bytes", "49151"}).status().message(),
            "--kv-cache-bytes 49151: one page of 16 tokens takes 49152");
}

TEST(ModelDefaults, StandUnderEverythingThatAPersonSays) {
  Options options = parse({"--top-p", "0.5"});
  ASSERT_TRUE(
      apply_model_defaults({.temperature = 0.25f, .top_p = 0.75f, .top_k = -1}, options).ok());
  EXPECT_EQ(options.number("temperature"), 0.25);
  EXPECT_EQ(options.value("temperature").origin, "model generation_config.json");
  EXPECT_EQ(options.number("top-p"), 0.5);
  EXPECT_EQ(options.integer("top-k"), 0);  // -1 means "off" in Hugging Face's files
  EXPECT_EQ(options.number("min-p"), 0);
  EXPECT_THAT(apply_model_defaults({.temperature = -1.0f}, options).message(),
              HasSubstr("model generation_config.json: --temperature is \"-1\""));
}

}  // namespace
}  // namespace bascule
