#include "engine/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

namespace bascule {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// One request's draws over rows of its own.
struct Draws {
  std::vector<float> logits;
  Sampler sampler;
  SamplingScratch scratch;

  Draws(std::vector<float> row, SamplingParams params, std::vector<int32_t> prompt = {},
        int64_t n_valid = INT64_MAX, uint64_t seed = 1)
      : logits(std::move(row)),
        sampler(std::move(params), seed, prompt, int64_t(logits.size()), n_valid),
        scratch(int64_t(logits.size())) {}

  Sampled at(int64_t position, std::vector<int32_t> masked = {}) {
    const auto row = View<const float, 1>::packed(logits.data(), {int64_t(logits.size())});
    return sampler.sample(row, position, masked, scratch);
  }
  // How often each token comes in n draws.
  std::map<int32_t, int> counts(int n) {
    std::map<int32_t, int> counts;
    for (int i = 0; i < n; ++i) ++counts[at(i).token];
    return counts;
  }
};

std::vector<float> logits_of(std::vector<double> probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(float(std::log(p)));
  return logits;
}

// Vectors of the authors' own test (Random123, kat_vectors).
TEST(Philox, GivesThePublishedWords) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Sampler, GreedyTakesTheLargestAndTiesGoToTheLowestId) {
  EXPECT_EQ(Draws({1, 3, 2, 3}, {.temperature = 0}).at(0).token, 1);
  EXPECT_EQ(Draws({-kInfinity, -5, -kInfinity}, {.temperature = 0}).at(0).token, 1);
}

TEST(Sampler, FollowsTheDistribution) {
  const std::vector<double> p = {0.5, 0.25, 0.15, 0.1};
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    double sum = 0;
    for (const double v : p) sum += std::pow(v, 1 / temperature);
    auto counts = Draws(logits_of(p), {.temperature = temperature}).counts(100000);
    double chi_square = 0;
    for (int i = 0; i < 4; ++i) {
      const double expected = 100000 * std::pow(p[i], 1 / temperature) / sum;
      chi_square += std::pow(counts[i] - expected, 2) / expected;
    }
    EXPECT_LT(chi_square, 16.27) << temperature;  // 3 degrees of freedom, p = 0.001
  }
}

TEST(Sampler, TinyTemperatureIsGreedy) {
  EXPECT_EQ(Draws({1, 1.0001f, 0.5f}, {.temperature = 1e-30f}).counts(100).size(), 1u);
}

TEST(Sampler, TopKKeepsTheLikeliestAndTiesGoToTheLowestId) {
  const auto counts = Draws({0, 2, 1, 2, 1}, {.top_k = 3}).counts(5000);
  EXPECT_EQ(counts.size(), 3u);
  EXPECT_EQ(counts.count(1) + counts.count(3) + counts.count(2), 3u);
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  // 0.5 + 0.25 = 0.75 reaches 0.7, and 0.5 does not.
  const auto logits = logits_of({0.1, 0.25, 0.5, 0.15});
  EXPECT_EQ(Draws(logits, {.top_p = 0.7f}).counts(3000).size(), 2u);
  EXPECT_EQ(Draws(logits, {.top_p = 0.76f}).counts(3000).size(), 3u);
  EXPECT_EQ(Draws(logits, {.top_p = 1e-6f}).counts(3000), (std::map<int32_t, int>{{2, 3000}}));
  // A share of what top_k left: 0.5 of 0.75 is 0.667.
  EXPECT_EQ(Draws(logits, {.top_k = 2, .top_p = 0.66f}).counts(3000).size(), 1u);
  EXPECT_EQ(Draws(logits, {.top_k = 2, .top_p = 0.67f}).counts(3000).size(), 2u);
}

TEST(Sampler, MinPIsAShareOfTheLikeliest) {
  const auto logits = logits_of({0.1, 0.25, 0.5, 0.15});
  EXPECT_EQ(Draws(logits, {.min_p = 0.49f}).counts(3000).size(), 2u);
  EXPECT_EQ(Draws(logits, {.min_p = 0.29f}).counts(3000).size(), 3u);
  EXPECT_EQ(Draws(logits, {.top_k = 4, .min_p = 0.49f}).counts(3000).size(), 2u);
}

// The sets against a plain definition, on rows of many sizes.
TEST(Sampler, FiltersAgreeWithAFullSort) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 2);
  for (int round = 0; round < 60; ++round) {
    std::vector<float> row(5 + random() % 60);
    for (float& x : row) x = std::round(normal(random) * 4) / 4;  // with ties
    const SamplingParams params{.temperature = 0.7f,
                                .top_k = int32_t(random() % 3 ? random() % 20 : 0),
                                .top_p = random() % 2 ? 0.8f : 1.0f,
                                .min_p = random() % 2 ? 0.05f : 0.0f};
    std::vector<int32_t> order(row.size());
    for (size_t i = 0; i < row.size(); ++i) order[i] = int32_t(i);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return row[a] > row[b]; });
    if (params.top_k > 0) order.resize(std::min(order.size(), size_t(params.top_k)));
    const auto weight = [&](int32_t i) {
      return std::exp((row[i] - row[order[0]]) / params.temperature);
    };
    double total = 0, share = 0;
    for (const int32_t i : order) total += weight(i);
    std::map<int32_t, double> kept;
    for (const int32_t i : order) {
      if (share >= params.top_p * total || weight(i) < params.min_p) break;
      kept[i] = weight(i);
      share += weight(i);
    }
    const auto counts = Draws(row, params).counts(4000);
    for (const auto& [token, n] : counts) EXPECT_TRUE(kept.contains(token)) << round;
    for (const auto& [token, w] : kept)
      EXPECT_TRUE(counts.contains(token) || w / share < 0.01) << round;
  }
}

TEST(Sampler, PenaltiesCountTheAnswerAndRepetitionThePromptToo) {
  const auto token_after = [](SamplingParams params, std::vector<int32_t> answer) {
    params.temperature = 0;
    Draws draws({4.0f, 3.0f, 2.0f, -1.0f}, params, /*prompt=*/{1});
    for (const int32_t token : answer) draws.sampler.accept(token);
    return draws.at(0).token;
  };
  EXPECT_EQ(token_after({.presence_penalty = 1.5f}, {}), 0);
  EXPECT_EQ(token_after({.presence_penalty = 1.5f}, {0}), 1);     // 4 - 1.5 < 3
  EXPECT_EQ(token_after({.presence_penalty = 0.9f}, {0, 0}), 0);  // once, however often
  EXPECT_EQ(token_after({.frequency_penalty = 0.6f}, {0}), 0);
  EXPECT_EQ(token_after({.frequency_penalty = 0.6f}, {0, 0}), 1);  // 4 - 1.2 < 3
  EXPECT_EQ(token_after({.repetition_penalty = 2.5f}, {0}), 2);    // 1.6, 1.2 (prompt), 2
  EXPECT_EQ(token_after({.presence_penalty = -2.0f}, {2, 1}), 1);  // 3 + 2
  // A negative logit is multiplied: -1 becomes -3.
  Draws negative({-1.0f, -2.0f}, {.temperature = 0, .repetition_penalty = 3}, {0});
  EXPECT_EQ(negative.at(0).token, 1);
}

TEST(Sampler, BiasIsAddedAfterPenalties) {
  Draws draws({4, 3, 2}, {.temperature = 0, .repetition_penalty = 4, .logit_bias = {{2, 2.5f}}},
              {2});
  EXPECT_EQ(draws.at(0).token, 0);  // 2 / 4 + 2.5 = 3 < 4; before the penalty it would be 1.125
  Draws more({4, 3, 2}, {.temperature = 0, .repetition_penalty = 4, .logit_bias = {{2, 3.6f}}},
             {2});
  EXPECT_EQ(more.at(0).token, 2);
  EXPECT_EQ(Draws({4, 3}, {.logit_bias = {{0, -100}}}).counts(1000).size(), 1u);
}

TEST(Sampler, NeverChoosesMaskedOrInvalidIds) {
  EXPECT_EQ(Draws({1, 2, 3, 9}, {.temperature = 0}, {}, /*n_valid=*/3).at(0).token, 2);
  EXPECT_EQ(Draws({1, 2, 3, 9}, {.temperature = 0}, {}, 3).at(0, {2}).token, 1);
  EXPECT_EQ(Draws({1, 2, 3, 9}, {.top_k = 4}, {}, 2).counts(500).count(3), 0u);
  EXPECT_EQ(Draws({1, 2}, {.temperature = 0}).at(0, {0, 1}).fault, Sampled::Fault::kNothingAllowed);
  EXPECT_EQ(Draws({1, 2}, {}).at(0, {0, 1}).fault, Sampled::Fault::kNothingAllowed);
}

TEST(Sampler, ALogitThatIsNoNumberIsAFaultAndNeverAToken) {
  for (const float bad : {kNan, -kNan, kInfinity})
    for (const float temperature : {0.0f, 1.0f}) {
      const Sampled sampled = Draws({1, bad, 2}, {.temperature = temperature}).at(0);
      EXPECT_EQ(sampled.fault, Sampled::Fault::kNotANumber);
      EXPECT_EQ(sampled.token, -1);
    }
}

TEST(Sampler, LogprobsAreTheModelsOwnWhateverTheRules) {
  Draws draws(logits_of({0.1, 0.4, 0.2, 0.3}),
              {.temperature = 0, .logit_bias = {{0, 50}}, .logprobs = true, .top_logprobs = 3});
  const Sampled sampled = draws.at(0);
  EXPECT_EQ(sampled.token, 0);
  EXPECT_NEAR(sampled.logprob, std::log(0.1), 1e-6);
  ASSERT_EQ(sampled.n_top, 3);
  EXPECT_EQ(sampled.top[0].token, 1);
  EXPECT_EQ(sampled.top[1].token, 3);
  EXPECT_EQ(sampled.top[2].token, 2);
  EXPECT_NEAR(sampled.top[0].logprob, std::log(0.4), 1e-6);
  EXPECT_NEAR(sampled.top[2].logprob, std::log(0.2), 1e-6);
}

TEST(Sampler, TopLogprobsOfTiesAreInOrderOfIds) {
  const Sampled s =
      Draws({1, 2, 2, 1, 2}, {.temperature = 0, .logprobs = true, .top_logprobs = 4}).at(0);
  std::vector<int32_t> ids;
  for (int i = 0; i < s.n_top; ++i) ids.push_back(s.top[i].token);
  EXPECT_EQ(ids, (std::vector<int32_t>{1, 2, 4, 0}));
  EXPECT_EQ(Draws({1, 2}, {.temperature = 0, .logprobs = true, .top_logprobs = 4}).at(0).n_top, 2);
}

// https://github.com/vllm-project/vllm/issues/3333: seeds, choices and repeats.
TEST(Sampler, DrawsDependOnSeedChoiceAndPositionAlone) {
  const std::vector<float> flat(1000, 0);
  const auto tokens = [&](uint64_t seed, int32_t choice) {
    Draws draws(flat, {.seed = seed, .choice = choice});
    std::vector<int32_t> tokens;
    for (int64_t p = 20; p-- > 0;) tokens.push_back(draws.at(p).token);  // in any order
    return tokens;
  };
  EXPECT_EQ(tokens(7, 0), tokens(7, 0));
  EXPECT_NE(tokens(7, 0), tokens(8, 0));
  EXPECT_NE(tokens(7, 0), tokens(7, 1));
  EXPECT_NE(tokens(7, 1), tokens(7, 2));
  EXPECT_NE(tokens(7, 0), tokens(7 + (uint64_t{1} << 32), 0));
}

TEST(SamplingParams, EachFieldOutOfRangeIsNamed) {
  const auto message = [](const SamplingParams& params) {
    const Status status = validate(params, 100);
    return status.ok() ? "" : status.message();
  };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({.temperature = -1}).substr(0, 15), "temperature -1:");
  EXPECT_EQ(message({.temperature = kNan}).substr(0, 15), "temperature nan");
  EXPECT_EQ(message({.temperature = kInfinity}).substr(0, 15), "temperature inf");
  EXPECT_EQ(message({.top_k = -2}), "top_k -2: 0 (all) or more");
  EXPECT_EQ(message({.top_p = 0}), "top_p 0: above 0, and 1 at most");
  EXPECT_EQ(message({.top_p = 1.5f}), "top_p 1.5: above 0, and 1 at most");
  EXPECT_EQ(message({.min_p = 2}), "min_p 2: from 0 to 1");
  EXPECT_EQ(message({.presence_penalty = 3}), "presence_penalty 3: from -2 to 2");
  EXPECT_EQ(message({.frequency_penalty = kNan}), "frequency_penalty nan: from -2 to 2");
  EXPECT_EQ(message({.repetition_penalty = 0}), "repetition_penalty 0: above 0; 1 changes nothing");
  EXPECT_EQ(message({.logit_bias = {{100, 1}}}), "logit_bias for token 100: ids are from 0 to 99");
  EXPECT_EQ(message({.logit_bias = {{5, 101}}}), "token 5: logit_bias 101: from -100 to 100");
  EXPECT_EQ(message({.logprobs = true, .top_logprobs = 21}), "top_logprobs 21: from 0 to 20");
  EXPECT_EQ(message({.top_logprobs = 2}), "top_logprobs without logprobs: ask for both");
}

}  // namespace
}  // namespace bascule
