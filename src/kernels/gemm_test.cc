#include "kernels/gemm.h"

#include <fmt/format.h>

#include "kernels/row_test.h"

namespace bascule {
namespace {

struct Shape {
  int64_t n_tokens, n_in, n_out;
  Dtype weight_type = Dtype::kBf16, x_type = Dtype::kBf16;
  bool accumulate = false;
};

std::string text(const Shape& s) {
  return fmt::format("{} tokens, {} {} to {}, weights {}{}", s.n_tokens, s.n_in, name(s.x_type),
                     s.n_out, name(s.weight_type), s.accumulate ? ", accumulating" : "");
}

struct Case {
  explicit Case(const Shape& s)
      : shape(s),
        x(Matrix::random(s.n_tokens, s.n_in, s.x_type, 1)),
        weight(Matrix::random(s.n_out, s.n_in, s.weight_type, 2)),
        before(s.accumulate ? Matrix::random(s.n_tokens, s.n_out, Dtype::kF32, 3)
                            : Matrix(s.n_tokens, s.n_out)) {}

  MatMul op(Matrix& y) {
    return {.x = x.tensor(),
            .weight = weight.tensor(),
            .y = y.view<float>(),
            .accumulate = shape.accumulate};
  }
  Matrix run(const Kernel<MatMul>& row, int n_threads) {
    Matrix y = before;
    run_row(row, op(y), n_threads);
    return y;
  }
  // Each token by itself.
  Matrix run_alone(const Kernel<MatMul>& row) {
    Matrix y = before;
    for (int64_t t = 0; t < shape.n_tokens; ++t) {
      MatMul one = op(y);
      one.x = one.x.slice(t, 1);
      one.y = one.y.slice(t, 1);
      run_row(row, one, 1);
    }
    return y;
  }

  Shape shape;
  Matrix x, weight, before;
};

void expect_rows_match(const Shape& shape) {
  Case c(shape);
  Matrix probe = c.before;
  const auto rows = rows_for(c.op(probe));
  const Matrix expected = c.run(*rows[0], 1);
  for (const Kernel<MatMul>* row : rows) {
    const Matrix y = c.run(*row, 2);
    const std::string what = fmt::format("{}, {}", row->name, text(shape));
    expect_close(y, expected, what);
    EXPECT_TRUE(y.borders_are_untouched()) << what;
  }
}

constexpr Dtype kWeightTypes[] = {Dtype::kF32, Dtype::kBf16, Dtype::kF16};
constexpr Dtype kActivationTypes[] = {Dtype::kF32, Dtype::kBf16};

TEST(MatMul, EveryRowMatchesTheReferenceInEveryBandAndType) {
  for (const int64_t n_tokens : kTokensOfEveryBand)
    for (const Dtype w : kWeightTypes)
      for (const Dtype x : kActivationTypes)
        expect_rows_match({n_tokens, 70, 37, w, x, n_tokens % 2 == 0});
}

TEST(MatMul, EveryRowMatchesTheReferenceAtOddSizes) {
  for (const int64_t n_tokens : {1, 3, 7})
    for (const int64_t n_in : kOddSizes)
      for (const int64_t n_out : kOddSizes)
        if (n_in <= 9 || n_out <= 9 || n_in == n_out) expect_rows_match({n_tokens, n_in, n_out});
}

TEST(MatMul, EveryRowMatchesTheReferenceOverManyColumns) {
  for (const int64_t n_tokens : {1, 2, 6, 98})
    for (const int64_t n_in : {1023, 1024, 1025, 3000}) expect_rows_match({n_tokens, n_in, 21});
}

TEST(MatMul, ATokensBitsDependOnNothingBesideIt) {
  for (const Dtype w : kWeightTypes) {
    for (const int64_t n_tokens : {2, 3, 4, 5, 8, 97, 103}) {
      for (const int64_t n_in : {61, 1100}) {
        Case c({n_tokens, n_in, 50, w, Dtype::kBf16, n_tokens % 2 == 0});
        Matrix probe = c.before;
        for (const Kernel<MatMul>* row : rows_for(c.op(probe))) {
          const Matrix alone = c.run_alone(*row);
          for (const int n_threads : {1, 2, 3})
            EXPECT_TRUE(c.run(*row, n_threads).same_bits(alone))
                << row->name << ", " << text(c.shape) << ", " << n_threads << " threads";
        }
      }
    }
  }
}

TEST(MatMul, NoRowOfAnInstructionSetRunsWhereItIsNarrowedAway) {
  Case c({1, 64, 64});
  const Machine all = Machine::detect(), narrow = *all.narrowed_to("baseline");
  for (const Kernel<MatMul>& row : registry().rows<MatMul>()) {
    if (row.grade != Grade::kOptimised) continue;
    const Refusal why = row.refuses(c.op(c.before), narrow);
    ASSERT_TRUE(why.has_value()) << row.name;
    EXPECT_NE(why->find("this machine has no"), std::string::npos) << *why;
  }
}

TEST(MatMul, TypesThatTheLoopsCannotReadAreRefusedWithTheirName) {
  Case c({1, 64, 64});
  for (const Kernel<MatMul>& row : registry().rows<MatMul>()) {
    if (row.grade != Grade::kPortable) continue;
    MatMul op = c.op(c.before);
    op.weight.dtype = Dtype::kF8E4m3;
    const Refusal why = row.refuses(op, Machine::detect());
    ASSERT_TRUE(why.has_value()) << row.name;
    EXPECT_EQ(*why, "weights are F8_E4M3");
  }
}

}  // namespace
}  // namespace bascule
