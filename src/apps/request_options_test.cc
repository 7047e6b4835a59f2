#include "apps/request_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_folder.h"

namespace bascule {
namespace {

using testing::HasSubstr;

// A command line of `run` as "MODEL|PROMPT"; "-" where there is no prompt.
std::string split(const std::vector<std::string>& words) {
  const Result<RunWords> result = split_words(words);
  if (!result.ok()) return result.status().message();
  return result->model + "|" + result->prompt.value_or("-");
}

TEST(SplitWords, FirstIsModelIfItLooksLikeOneElseThePrompt) {
  const TempFolder folder;
  EXPECT_EQ(split({}), "|-");
  EXPECT_EQ(split({"Name three rivers."}), "|Name three rivers.");
  EXPECT_EQ(split({folder.path().string()}), folder.path().string() + "|-");
  EXPECT_EQ(split({folder.path().string(), "hi"}), folder.path().string() + "|hi");
  EXPECT_EQ(split({"zai-org/GLM-5.2"}), "zai-org/GLM-5.2|-");
  EXPECT_EQ(split({"zai-org/GLM-5.2@main", "hi"}), "zai-org/GLM-5.2@main|hi");
  EXPECT_EQ(split({"./typo", "hi"}), "./typo|hi");
  EXPECT_EQ(split({"Is it 1/2 or 3/4?"}), "|Is it 1/2 or 3/4?");
  EXPECT_EQ(split({"/think about a/b"}), "|/think about a/b");
  EXPECT_EQ(split({""}), "|");
}

TEST(SplitWords, TooManyWordsAreRefused) {
  EXPECT_EQ(split({"Name", "three"}),
            "\"Name\" is no folder and no ORG/NAME, so it is the prompt, and \"three\" after it is "
            "one word too many; a prompt of several words needs quotes");
  EXPECT_EQ(split({"a/b", "Name", "three"}),
            "\"three\" comes after the prompt \"Name\"; a prompt of several words needs quotes");
}

TEST(PromptIds, ComeFromTheCommandLineOrAFile) {
  const TempFolder folder;
  const std::string file = folder.write("ids", "5, 6\n7\n").string();
  EXPECT_EQ(*prompt_ids("5,6,7"), (std::vector<int32_t>{5, 6, 7}));
  EXPECT_EQ(*prompt_ids("@" + file), (std::vector<int32_t>{5, 6, 7}));
  EXPECT_EQ(prompt_ids("@/no/such").status().message(),
            "--prompt-ids: /no/such: No such file or directory");
  EXPECT_EQ(prompt_ids("5,x").status().message(), "--prompt-ids: \"x\" is no token id");
  EXPECT_EQ(prompt_ids(" ,").status().message(), "--prompt-ids: there is no token id in it");
}

TEST(LogitBias, IsAListOfPairs) {
  using Pairs = std::vector<std::pair<int32_t, float>>;
  EXPECT_EQ(*parse_logit_bias(""), Pairs());
  EXPECT_EQ(*parse_logit_bias("5:-100,17:2.5"), (Pairs{{5, -100}, {17, 2.5}}));
  for (const char* bad : {"5", "5:", ":1", "5:x", "5:1 ", "5:nan", "99999999999:1", "5:1,,6:1"})
    EXPECT_THAT(parse_logit_bias(bad).status().message(), HasSubstr("is not ID:X")) << bad;
}

TEST(RequestSpec, HasEveryOption) {
  const std::string commands[] = {"run"};
  const CommandLine line = parse_command_line({"run",
                                               "--max-tokens",
                                               "7",
                                               "--min-tokens",
                                               "2",
                                               "--ignore-eos",
                                               "--stop-token-ids",
                                               "3,4",
                                               "--temperature",
                                               "0.5",
                                               "--top-k",
                                               "9",
                                               "--top-p",
                                               "0.25",
                                               "--min-p",
                                               "0.125",
                                               "--presence-penalty",
                                               "1",
                                               "--frequency-penalty",
                                               "-1",
                                               "--repetition-penalty",
                                               "1.5",
                                               "--logit-bias",
                                               "5:1",
                                               "--seed",
                                               "11",
                                               "--logprobs",
                                               "3"},
                                              {}, commands)
                               .value();
  const RequestSpec spec = request_spec(line.options).value();
  EXPECT_EQ(spec.max_tokens, 7);
  EXPECT_EQ(spec.min_tokens, 2);
  EXPECT_TRUE(spec.ignore_eos);
  EXPECT_EQ(spec.stop_tokens, (std::vector<int32_t>{3, 4}));
  EXPECT_EQ(spec.sampling.temperature, 0.5f);
  EXPECT_EQ(spec.sampling.top_k, 9);
  EXPECT_EQ(spec.sampling.top_p, 0.25f);
  EXPECT_EQ(spec.sampling.min_p, 0.125f);
  EXPECT_EQ(spec.sampling.presence_penalty, 1);
  EXPECT_EQ(spec.sampling.frequency_penalty, -1);
  EXPECT_EQ(spec.sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(spec.sampling.logit_bias.size(), 1u);
  EXPECT_EQ(spec.sampling.seed, 11u);
  EXPECT_TRUE(spec.sampling.logprobs);
  EXPECT_EQ(spec.sampling.top_logprobs, 3);
}

TEST(RequestSpec, WithoutOptionsIsAPlainDraw) {
  const RequestSpec spec = request_spec(Options()).value();
  EXPECT_EQ(spec.max_tokens, std::nullopt);
  EXPECT_EQ(spec.sampling.temperature, 1);
  EXPECT_EQ(spec.sampling.seed, std::nullopt);
  EXPECT_FALSE(spec.sampling.logprobs);
}

}  // namespace
}  // namespace bascule
