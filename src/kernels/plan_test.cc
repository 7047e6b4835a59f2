#include "kernels/plan.h"

#include <gtest/gtest.h>

namespace bascule {
namespace {

void nothing(const MatMul&, Stream&) {}

MatMul product_of(int64_t n_tokens) {
  return {.x = Tensor<2>::packed(nullptr, Dtype::kF32, {n_tokens, 64}),
          .weight = Tensor<2>::packed(nullptr, Dtype::kBf16, {32, 64}),
          .y = View<float, 2>::packed(nullptr, {n_tokens, 32})};
}

Registry rows_with(Kernel<MatMul> extra) {
  Registry r;
  r.rows<MatMul>().push_back({.name = "cpu.matmul.reference", .launch = nothing});
  r.rows<MatMul>().push_back(extra);
  return r;
}

PlanPolicy policy(KernelMode mode = KernelMode::kAuto) {
  return {.mode = mode, .machine = {.isas = {Isa::kBaseline}}, .max_batch_tokens = 100};
}

TEST(Bands, ShareTheirEnds) {
  EXPECT_EQ(band_of(1), 0);
  EXPECT_EQ(band_of(2), 1);
  EXPECT_EQ(band_of(4), 1);
  EXPECT_EQ(band_of(5), 2);
  EXPECT_EQ(band_of(257), kBands - 1);
}

TEST(Plan, TakesTheHighestGradeAndTellsEachBandsCost) {
  const Registry rows =
      rows_with({.name = "cpu.matmul.fast", .grade = Grade::kOptimised, .launch = nothing});
  Plan plan(policy());
  plan.add<MatMul>("head", 3, [](int64_t n) { return product_of(n); }, rows);
  ASSERT_EQ(plan.rows().size(), 5u);  // 1, 4, 16, 64 and 100 tokens
  EXPECT_EQ(plan.rows()[0].kernel, "cpu.matmul.fast");
  EXPECT_EQ(plan.rows()[0].origin, Origin::kDefault);
  EXPECT_EQ(plan.rows()[4].n_tokens, 100);
  EXPECT_EQ(plan.rows()[4].cost.flops, 2.0 * 100 * 32 * 64);
  EXPECT_EQ(plan.rows()[0].cost.bytes, 64 * 4 + 32 * 64 * 2 + 32 * 4);
  EXPECT_EQ(plan.rows()[0].shape, "x [n, 64] F32 · w [32, 64] BF16");
}

// As newer instruction sets' rows are added after older ones'.
TEST(Plan, TakesTheLastOfEqualGrades) {
  Registry rows = rows_with({.name = "first", .grade = Grade::kOptimised, .launch = nothing});
  rows.rows<MatMul>().push_back({.name = "last", .grade = Grade::kOptimised, .launch = nothing});
  rows.rows<MatMul>().push_back({.name = "lesser", .grade = Grade::kPortable, .launch = nothing});
  Plan plan(policy());
  plan.add<MatMul>("head", 1, [](int64_t n) { return product_of(n); }, rows);
  EXPECT_EQ(plan.rows()[0].kernel, "last");
}

TEST(Plan, KeepsWhyARowWasRefused) {
  const Registry rows = rows_with({.name = "cpu.matmul.avx512",
                                   .grade = Grade::kOptimised,
                                   .refuses = [](const MatMul&, const Machine& machine) -> Refusal {
                                     if (machine.has(Isa::kAvx512)) return {};
                                     return "this machine has no avx512";
                                   },
                                   .launch = nothing});
  Plan plan(policy());
  plan.add<MatMul>("head", 1, [](int64_t n) { return product_of(n); }, rows);
  EXPECT_EQ(plan.rows()[0].kernel, "cpu.matmul.reference");
  EXPECT_EQ(plan.rows()[0].origin, Origin::kReference);
  ASSERT_EQ(plan.rows()[0].refused.size(), 1u);
  EXPECT_EQ(plan.rows()[0].refused[0], "cpu.matmul.avx512: this machine has no avx512");
}

// A row that serves some bands only would make a token's result depend on its neighbours.
TEST(Plan, RefusesARowThatDoesNotServeEveryBand) {
  const Registry rows = rows_with({.name = "cpu.matmul.small",
                                   .grade = Grade::kOptimised,
                                   .refuses = [](const MatMul& op, const Machine&) -> Refusal {
                                     if (op.n_tokens() <= 16) return {};
                                     return "more than 16 tokens";
                                   },
                                   .launch = nothing});
  Plan plan(policy());
  plan.add<MatMul>("head", 1, [](int64_t n) { return product_of(n); }, rows);
  for (const PlannedRow& row : plan.rows()) EXPECT_EQ(row.kernel, "cpu.matmul.reference");
}

TEST(Plan, RefusesARowWhoseResultDependsOnNeighbours) {
  const Registry rows = rows_with({.name = "cpu.matmul.split",
                                   .grade = Grade::kOptimised,
                                   .batch_invariant = false,
                                   .launch = nothing});
  Plan plan(policy());
  plan.add<MatMul>("head", 1, [](int64_t n) { return product_of(n); }, rows);
  EXPECT_EQ(plan.rows()[0].kernel, "cpu.matmul.reference");
  EXPECT_NE(plan.rows()[0].refused[0].find("depends on the others"), std::string::npos);
}

TEST(Plan, ReferenceModeTakesNothingElse) {
  const Registry rows =
      rows_with({.name = "cpu.matmul.fast", .grade = Grade::kOptimised, .launch = nothing});
  Plan plan(policy(KernelMode::kReference));
  plan.add<MatMul>("head", 1, [](int64_t n) { return product_of(n); }, rows);
  EXPECT_EQ(plan.rows()[0].kernel, "cpu.matmul.reference");
  EXPECT_EQ(plan.rows()[0].origin, Origin::kReference);
}

TEST(Plan, KeepsTheLargestScratch) {
  const Registry rows =
      rows_with({.name = "cpu.matmul.panels",
                 .grade = Grade::kOptimised,
                 .scratch_bytes = [](const MatMul& op) { return op.n_tokens() * 8; },
                 .launch = nothing});
  Plan plan(policy());
  plan.add<MatMul>("head", 1, [](int64_t n) { return product_of(n); }, rows);
  EXPECT_EQ(plan.scratch_bytes(), 800);
}

TEST(Site, LaunchesTheRowOfItsBand) {
  static int n_launches;
  n_launches = 0;
  const Registry rows = rows_with({.name = "cpu.matmul.fast",
                                   .grade = Grade::kOptimised,
                                   .launch = [](const MatMul&, Stream&) { ++n_launches; }});
  Plan plan(policy());
  const auto site = plan.add<MatMul>("head", 1, [](int64_t n) { return product_of(n); }, rows);
  Stream stream;
  site(product_of(7), stream);
  site(product_of(0), stream);  // no tokens: nothing to do
  EXPECT_EQ(n_launches, 1);
}

}  // namespace
}  // namespace bascule
