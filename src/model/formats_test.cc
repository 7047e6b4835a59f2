// Checkpoints in block formats against transformers' outputs from the exactly dequantised weights.
#include <gtest/gtest.h>

#include <cstdio>

#include "kernels/registry.h"
#include "model/stored_format.h"
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

std::vector<float> logits_of(const GoldenModel& model, KernelMode mode, Dtype activations,
                             ActivationScheme scheme) {
  Sequence sequence(model, mode, activations, {}, 2, scheme);
  return sequence.run(model.expected<int32_t>("input_ids")).logits;
}

// How far the fast rows may be from `logits`, and how far right implementations are.
struct Bar {
  const Scheme* scheme;
  Dtype activations;
  ActivationScheme rounding;
  double change, argmaxes;
};
const Bar kBars[] = {
    {&kCalmMxfp4, Dtype::kBf16, ActivationScheme::kPlain, 0.030, 0.97},    // 0.0155
    {&kCalmFp8, Dtype::kBf16, ActivationScheme::kPlain, 0.030, 0.97},      // 0.0174
    {&kCalmMxfp4, Dtype::kF32, ActivationScheme::kFp8, 0.055, 0.97},       // 0.027, 99.4 %
    {&kCalmMxfp4, Dtype::kBf16, ActivationScheme::kFp8, 0.055, 0.97},      //
    {&kCalmMxfp4, Dtype::kF32, ActivationScheme::kInt8, 0.030, 0.97},      // 0.010
    {&kCalmMxfp4, Dtype::kBf16, ActivationScheme::kInt8, 0.030, 0.97},     //
    {&kCalmMxfp4, Dtype::kF32, ActivationScheme::kInt8All, 0.040, 0.97},   // 0.017
    {&kCalmMxfp4, Dtype::kBf16, ActivationScheme::kInt8All, 0.040, 0.97},  //
};

TEST(ActivationSchemes, StayNearTheLogitsOfUnroundedInputs) {
  for (const Bar& bar : kBars) {
    const Scheme& scheme = *bar.scheme;
    const StoredGolden stored(scheme.base, scheme.name, scheme.format_of);
    const auto expected = stored.model.expected<float>("logits");
    const int64_t vocab = stored.model.config.vocab_size;
    const auto logits = logits_of(stored.model, KernelMode::kFast, bar.activations, bar.rounding);
    const double change = relative_change(logits, expected);
    const double argmax = share_of_equal(argmaxes(logits, vocab), argmaxes(expected, vocab));
    const std::string what = std::string(scheme.name) + " " + std::string(name(bar.activations)) +
                             " " + std::string(name(bar.rounding)) + ": " + std::to_string(change) +
                             ", " + std::to_string(argmax);
    EXPECT_LE(change, bar.change) << what;
    EXPECT_GE(argmax, bar.argmaxes) << what;
    EXPECT_GT(change, 0.001) << what;  // it rounds
    printf("%s\n", what.c_str());
  }
}

// The scheme as declared against transformers with Quark's own quantisers. A smoke check: the last
// bit moves some inputs by a whole step, so two right engines are as far apart as the scheme itself
// is from `logits`; 1.5 times what a BF16 run of it shows.
TEST(ActivationSchemes, AsDeclaredIsNearTransformers) {
  struct Declared {
    const Scheme* scheme;
    const char* logits;
    double change, argmaxes;
  };
  for (const Declared& d : {Declared{&kCalmMxfp4, "logits_w4a4", 1.5 * 0.1293, 0.90},
                            Declared{&kCalmFp8, "logits_w8a8_kvb", 1.5 * 0.0609, 0.90}}) {
    const StoredGolden stored(d.scheme->base, d.scheme->name, d.scheme->format_of);
    const auto expected = stored.model.expected<float>(d.logits);
    const int64_t vocab = stored.model.config.vocab_size;
    const auto logits =
        logits_of(stored.model, KernelMode::kFast, Dtype::kF32, ActivationScheme::kDeclared);
    EXPECT_LE(relative_change(logits, expected), d.change) << d.logits;
    EXPECT_GE(share_of_equal(argmaxes(logits, vocab), argmaxes(expected, vocab)), d.argmaxes);
    printf("%s %s: %f, %f\n", d.scheme->name, d.logits, relative_change(logits, expected),
           share_of_equal(argmaxes(logits, vocab), argmaxes(expected, vocab)));
  }
}

// Single linears with rounded inputs, products in double: the tight check of a row.
TEST_P(Formats, ProbesOfSingleLinears) {
  Checkpoint& checkpoint = *model_.checkpoint;
  int n_probes = 0;
  for (const SafetensorsEntry& entry : model_.reference.header.entries) {
    if (!entry.name.starts_with("probe.") || !entry.name.ends_with(".x")) continue;
    const std::string linear = entry.name.substr(6, entry.name.size() - 8);
    const auto x = model_.expected<float>(entry.name);
    const auto expected = model_.expected<float>("probe." + linear + ".y");
    const int64_t n_tokens = entry.shape[0], n_in = entry.shape[1];
    const int64_t n_out = int64_t(expected.size()) / n_tokens;
    const StoredTensor& stored = *checkpoint.find(linear + ".weight");
    const StoredFormat format = stored_format(checkpoint, stored, {n_out, n_in});
    std::vector<std::unique_ptr<float[]>> owned;
    const WeightMatrix weight = weight_view(stored, format, n_out, n_in, owned);
    double largest = 0;
    for (const float y : expected) largest = std::max(largest, std::abs(double(y)));
    std::vector<float> y(expected.size());
    const MatMul op{.x = Tensor<2>::packed(x.data(), Dtype::kF32, {n_tokens, n_in}),
                    .weight = weight,
                    .y = View<float, 2>::packed(y.data(), {n_tokens, n_out}),
                    .rounding = rounding_of(ActivationScheme::kDeclared, weight.format)};
    ++n_probes;
    for (const Kernel<MatMul>& row : registry().rows<MatMul>()) {
      if (row.refuses && row.refuses(op, Machine::detect())) continue;
      Threads threads({.count = 2,
                       .scratch_bytes = row.scratch_bytes ? row.scratch_bytes(op) : 0,
                       .shared_bytes = row.shared_bytes ? row.shared_bytes(op) : 0});
      Stream stream{&threads};
      row.launch(op, stream);
      const double error = largest_difference(y, expected);
      if (weight.format == WeightFormat::kMxfp4) {
        EXPECT_EQ(error, 0) << row.name << " " << linear;
      } else {
        EXPECT_LE(error, 1e-6 * largest) << row.name << " " << linear;
      }
    }
  }
  EXPECT_GE(n_probes, 2);
}

}  // namespace
}  // namespace bascule
