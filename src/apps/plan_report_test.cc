#include "apps/plan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace bascule {
namespace {

using testing::HasSubstr;

// 10 GB/s and 100 GFLOP/s: a row is bound by its bytes below 10 operations a byte.
constexpr Peaks::Of kPeak = {
    .n_threads = 1, .read_bytes_per_second = 1e10, .fma_flops_per_second = 1e11};

struct Planned {
  std::unique_ptr<LoadedModel> model;
  EngineSetup setup;

  Planned() {
    model = load_model(std::string(BASCULE_TEST_DATA) + "/golden/glm-moe-dsa-tiny", {},
                       WeightUse::kShapes)
                .value();
    setup = plan_engine(*model, {.kernels = KernelMode::kReference, .max_context = 64}).value();
  }
};

TEST(PlanReport, JsonHasEveryRowOfThePlanAndEveryPool) {
  const Planned p;
  const Json json = parse_json(plan_json(*p.model, p.setup, kPeak), "plan").value();
  EXPECT_EQ(json["ops"].size(), p.setup.plans[0].rows().size());
  EXPECT_EQ(json["activations"], "F32");
  int64_t sum = 0;
  for (const Json& pool : json["memory"]["pools"]) sum += pool["bytes"].get<int64_t>();
  EXPECT_EQ(sum, json["memory"]["total_bytes"].get<int64_t>());
  EXPECT_EQ(json["memory"]["max_model_len"], 64);
}

TEST(PlanReport, LeastTimeIsTheLongerOfBytesAndOperations) {
  const Planned p;
  const Json json = parse_json(plan_json(*p.model, p.setup, kPeak), "plan").value();
  EXPECT_EQ(json["peaks"]["read_bytes_per_second"], 1e10);
  bool bytes_bind = false, flops_bind = false;
  for (const Json& op : json["ops"]) {
    const double by_bytes = op["bytes"].get<double>() / 1e10;
    const double by_flops = op["flops"].get<double>() / 1e11;
    EXPECT_DOUBLE_EQ(op["least_seconds"].get<double>(), std::max(by_bytes, by_flops)) << op;
    bytes_bind |= by_bytes > by_flops;
    flops_bind |= by_flops > by_bytes;
  }
  EXPECT_TRUE(bytes_bind);
  EXPECT_TRUE(flops_bind) << "at the largest band, products are bound by operations";
}

TEST(PlanReport, TextHasALineForEachSite) {
  const Planned p;
  const std::string text = plan_text(*p.model, p.setup, kPeak);
  for (const PlannedRow& row : p.setup.plans[0].rows())
    EXPECT_THAT(text, HasSubstr("\n" + row.site + " "));
  EXPECT_THAT(text, HasSubstr("\nKV cache "));
  EXPECT_THAT(text, HasSubstr("\nnote      not part of the model, not read: \"reference.safe"));
}

TEST(PlanReport, ExplainsAnOpOrASite) {
  const Planned p;
  const Plan& plan = p.setup.plans[0];
  const std::string text = explanation_text(plan, "layers.attention.q_a", kPeak).value();
  EXPECT_THAT(text, HasSubstr("chosen   cpu.matmul.reference (reference)"));
  EXPECT_THAT(text, HasSubstr(": reference rows were asked for"));
  EXPECT_EQ(text.find("layers.attention.q_b"), std::string::npos);
  EXPECT_THAT(explanation_text(plan, "matmul", kPeak).value(), HasSubstr("layers.attention.q_b"));
  const Json json =
      parse_json(explanation_json(plan, "layers.attention.q_a", kPeak).value(), "").value();
  EXPECT_EQ(json.size(), size_t(plan.n_bands()));
  EXPECT_THAT(explanation_text(plan, "matmull", kPeak).status().message(),
              HasSubstr("--explain matmull: the plan has the ops "));
}

}  // namespace
}  // namespace bascule
