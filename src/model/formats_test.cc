// Checkpoints in block formats against transformers' outputs from the exactly dequantised weights.
#include <gtest/gtest.h>

#include "support/stored_golden.h"

namespace bascule {
namespace {

struct Scheme {
  const char *base, *name;
  WeightFormat (*format_of)(const std::string& tensor);
};
const Scheme kTinyFp8 = {"glm-moe-dsa-tiny", "glm-moe-dsa-tiny-fp8", fp8_format_of};
const Scheme kCalmFp8 = {"glm-moe-dsa-calm", "glm-moe-dsa-calm-fp8", fp8_format_of};
const Scheme kTinyMxfp4 = {"glm-moe-dsa-tiny", "glm-moe-dsa-tiny-quark-mxfp4", mxfp4_format_of};
const Scheme kCalmMxfp4 = {"glm-moe-dsa-calm", "glm-moe-dsa-calm-quark-mxfp4", mxfp4_format_of};
const Scheme kTinyAttnFp8 = {"glm-moe-dsa-tiny", "glm-moe-dsa-tiny-quark-mxfp4-attnfp8",
                             attnfp8_format_of};

class Formats : public testing::TestWithParam<Scheme> {
 protected:
  StoredGolden stored_{GetParam().base, GetParam().name, GetParam().format_of};
  const GoldenModel& model_ = stored_.model;
};

TEST_P(Formats, LogitsAreTransformersWithFloatActivations) {
  const auto expected = model_.expected<float>("logits");
  const auto ids = model_.expected<int32_t>("input_ids");
  const int64_t vocab = model_.config.vocab_size;
  for (const KernelMode mode : {KernelMode::kReference, KernelMode::kFast}) {
    Sequence sequence(model_, mode, Dtype::kF32, {}, 2);
    const std::vector<float> logits = sequence.run(ids).logits;
    EXPECT_LE(largest_difference(logits, expected), 3e-4);
    EXPECT_EQ(argmaxes(logits, vocab), argmaxes(expected, vocab));
    RecordProperty(mode == KernelMode::kFast ? "fast rows" : "reference rows",
                   std::to_string(largest_difference(logits, expected)));
  }
}

TEST_P(Formats, EveryLinearHasAFastRow) {
  Sequence sequence(model_, KernelMode::kFast, Dtype::kBf16);
  for (const PlannedRow& row : sequence.plan().rows())
    EXPECT_NE(row.origin, Origin::kReference) << row.site << " " << row.shape;
}

// https://github.com/sgl-project/sglang/pull/9473
// https://github.com/bytedance-iaas/sglang/pull/731
TEST_P(Formats, PiecesAndRanksGiveTheBitsOfOne) {
  auto ids = model_.expected<int32_t>("input_ids");
  ids.resize(size_t(model_.config.index_topk) + 9);
  Sequence one(model_, KernelMode::kFast, Dtype::kBf16);
  const std::vector<float> expected = one.run(ids).logits;
  Sequence pieces(model_, KernelMode::kFast, Dtype::kBf16, {}, 2);
  std::vector<float> logits;
  for (size_t i = 0; i < ids.size(); i += 7) {
    const auto part = pieces.run({ids.begin() + i, ids.begin() + std::min(ids.size(), i + 7)});
    logits.insert(logits.end(), part.logits.begin(), part.logits.end());
  }
  EXPECT_EQ(logits, expected);
  for (const Layout layout : {Layout{.tp = 2}, Layout{.tp = 3}, Layout{.tp = 4}, Layout{.ep = 4},
                              Layout{.tp = 2, .ep = 4, .dp = 2}}) {
    Sequence ranks(model_, KernelMode::kFast, Dtype::kBf16, layout);
    EXPECT_EQ(ranks.run(ids).logits, expected)
        << "tp " << layout.tp << " ep " << layout.ep << " dp " << layout.dp;
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, Formats,
                         testing::Values(kTinyFp8, kCalmFp8, kTinyMxfp4, kCalmMxfp4, kTinyAttnFp8),
                         [](const auto& info) {
                           std::string name = info.param.name + sizeof("glm-moe-dsa");
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// A right implementation with BF16 activations differs by 0.0155 (MXFP4) and 0.0174 (FP8).
TEST(Bf16Activations, StayWithinTwiceTheirNaturalErrorInEveryFormat) {
  for (const Scheme& scheme : {kCalmMxfp4, kCalmFp8}) {
    const StoredGolden stored(scheme.base, scheme.name, scheme.format_of);
    const auto expected = stored.model.expected<float>("logits");
    Sequence sequence(stored.model, KernelMode::kFast, Dtype::kBf16, {}, 2);
    const std::vector<float> logits =
        sequence.run(stored.model.expected<int32_t>("input_ids")).logits;
    EXPECT_LE(relative_change(logits, expected), 0.030) << scheme.name;
    RecordProperty(scheme.name, std::to_string(relative_change(logits, expected)));
  }
}

}  // namespace
}  // namespace bascule
