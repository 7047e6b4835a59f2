#include "kernels/gemm.h"

#include <fmt/format.h>

#include "kernels/row_test.h"

namespace bascule {
namespace {

struct Shape {
  int64_t n_tokens, n_in, n_out;
  WeightFormat format = WeightFormat::kBf16;
  Dtype x_type = Dtype::kBf16;
  bool accumulate = false;
  Rounding rounding = Rounding::kNone;
};

std::string text(const Shape& s) {
  return fmt::format("{} tokens, {} {} to {}, weights {}{}", s.n_tokens, s.n_in, name(s.x_type),
                     s.n_out, name(s.format), s.accumulate ? ", accumulating" : "");
}

struct Case {
  explicit Case(const Shape& s)
      : shape(s),
        x(Matrix::random(s.n_tokens, s.n_in, s.x_type, 1)),
        weight(s.n_out, s.n_in, s.format, 2),
        before(s.accumulate ? Matrix::random(s.n_tokens, s.n_out, Dtype::kF32, 3)
                            : Matrix(s.n_tokens, s.n_out)) {}

  MatMul op(Matrix& y) {
    return {.x = x.tensor(),
            .weight = *weight,
            .y = y.view<float>(),
            .accumulate = shape.accumulate,
            .rounding = shape.rounding};
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
  Matrix x;
  StoredWeight weight;
  Matrix before;
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

constexpr Dtype kActivationTypes[] = {Dtype::kF32, Dtype::kBf16};

TEST(MatMul, EveryRowMatchesTheReferenceInEveryBandAndType) {
  for (const int64_t n_tokens : kTokensOfEveryBand)
    for (const WeightFormat w : kWeightFormats)
      for (const Dtype x : kActivationTypes)
        expect_rows_match({n_tokens, 70, 37, w, x, n_tokens % 2 == 0});
}

TEST(MatMul, EveryRowMatchesTheReferenceAtOddSizes) {
  for (const WeightFormat format : {WeightFormat::kBf16, WeightFormat::kFp8Blocks,
                                    WeightFormat::kFp8Rows, WeightFormat::kMxfp4})
    for (const int64_t n_tokens : {1, 3, 7})
      for (const int64_t n_in : kOddSizes)
        for (const int64_t n_out : kOddSizes)
          if (n_in <= 9 || n_out <= 9 || n_in == n_out)
            expect_rows_match({n_tokens, n_in, n_out, format});
}

TEST(MatMul, EveryRowMatchesTheReferenceOverManyColumns) {
  for (const int64_t n_tokens : {1, 2, 6, 98})
    for (const int64_t n_in : {1023, 1024, 1025, 3000})
      for (const WeightFormat format :
           {WeightFormat::kBf16, WeightFormat::kFp8Blocks, WeightFormat::kMxfp4})
        expect_rows_match({n_tokens, n_in, 21, format});
}

constexpr Rounding kRoundings[] = {Rounding::kInt8, Rounding::kFp8Groups, Rounding::kFp8Token,
                                   Rounding::kMxfp4};

TEST(MatMul, EveryRowRoundsItsInputAsTheReferenceDoes) {
  for (const Rounding rounding : kRoundings)
    for (const WeightFormat format : kWeightFormats)
      for (const int64_t n_tokens : {1, 3, 17})
        expect_rows_match({n_tokens, 150, 37, format, Dtype::kBf16, n_tokens == 3, rounding});
}

// Weights in tiles are read with int8 inputs alone.
TEST(MatMul, EveryRowMatchesTheReferenceWithTiles) {
  for (const int64_t n_tokens : kTokensOfEveryBand)
    expect_rows_match({n_tokens, 70, 37, WeightFormat::kMxfp4Tiles, Dtype::kBf16, n_tokens % 2 == 0,
                       Rounding::kInt8});
  for (const int64_t n_in : kOddSizes)
    for (const int64_t n_out : {1, 7, 8, 9, 64, 65})
      expect_rows_match(
          {3, n_in, n_out, WeightFormat::kMxfp4Tiles, Dtype::kF32, false, Rounding::kInt8});
  Case c({1, 64, 8, WeightFormat::kMxfp4Tiles, Dtype::kBf16, false, Rounding::kInt8});
  EXPECT_GE(rows_for(c.op(c.before)).size(), 2u);
}

TEST(MatMul, ATokensBitsDependOnNothingBesideIt) {
  std::vector<WeightFormat> formats = kWeightFormats;
  formats.push_back(WeightFormat::kMxfp4Tiles);
  for (const WeightFormat w : formats) {
    for (const int64_t n_tokens : {2, 3, 4, 5, 8, 97, 103}) {
      for (const int64_t n_in : {61, 1100}) {
        Case c({n_tokens, n_in, 50, w, Dtype::kBf16, n_tokens % 2 == 0,
                n_tokens % 3 == 0 || w == WeightFormat::kMxfp4Tiles ? Rounding::kInt8
                                                                    : Rounding::kNone});
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

// sgl-project/sglang#9473, vllm-project/vllm#48696: ranks cut where no block ends. A rank's rows
// may begin inside a block of scales; its result is that part of the whole, bit for bit.
// https://github.com/sgl-project/sglang/pull/9473 https://github.com/vllm-project/vllm/pull/48696
TEST(MatMul, RowsCutInsideABlockOfScalesGiveTheBitsOfTheWhole) {
  std::vector<WeightFormat> formats = kWeightFormats;
  formats.push_back(WeightFormat::kMxfp4Tiles);
  for (const WeightFormat format : formats) {
    Case c({3, 576, 300, format, Dtype::kBf16, false,
            format == WeightFormat::kMxfp4Tiles ? Rounding::kInt8 : Rounding::kNone});
    Matrix probe = c.before;
    for (const Kernel<MatMul>* row : rows_for(c.op(probe))) {
      const Matrix whole = c.run(*row, 1);
      Matrix parts = c.before;
      for (int part = 0; part < 7; ++part) {
        const int64_t first = 300 * part / 7, last = 300 * (part + 1) / 7;
        MatMul op = c.op(parts);
        op.weight = op.weight.slice(first, last - first);
        op.y = op.y.columns(first, last - first);
        run_row(*row, op, 1);
      }
      EXPECT_TRUE(parts.same_bits(whole)) << row->name << ", " << name(format);
    }
  }
}

TEST(MatMul, ColumnsThatBeginInsideABlockOfScalesAreLeftToTheReference) {
  for (const WeightFormat format : {WeightFormat::kFp8Blocks, WeightFormat::kMxfp4}) {
    Case c({2, 300, 20, format});
    Matrix y = c.before;
    MatMul op = c.op(y);
    op.weight = op.weight.columns(130, 41);
    op.x = op.x.columns(130, 41);
    const auto rows = rows_for(op);
    ASSERT_EQ(rows.size(), 1u);
    run_row(*rows[0], op, 1);
    for (int64_t t = 0; t < 2; ++t) {
      for (int64_t out = 0; out < 20; ++out) {
        double sum = 0;
        for (int64_t k = 130; k < 171; ++k) sum += double(c.x(t, k)) * (*c.weight)(out, k);
        EXPECT_NEAR(y(t, out), sum, 1e-5) << name(format);
      }
    }
  }
}

// Values that a sound file does not hold, and an unsound one may: every row reads them alike.
TEST(MatMul, OddCodesAndScalesHaveOneMeaning) {
  constexpr auto kColumns = 64;
  for (const int64_t n_tokens : {1, 9}) {
    Case mxfp4({n_tokens, kColumns, 12, WeightFormat::kMxfp4});
    mxfp4.weight.scale_byte(0, 0) = 0;                                           // 2^-127
    mxfp4.weight.scale_byte(1, 1) = 254;                                         // 2^127
    mxfp4.weight.scale_byte(2, 0) = 255;                                         // NaN
    for (int i = 0; i < kColumns / 2; ++i) mxfp4.weight.code_byte(3, i) = 0x88;  // -0
    for (int i = 0; i < kColumns / 2; ++i) mxfp4.weight.code_byte(1, i) = i == 20 ? 1 : 0;
    Case fp8({n_tokens, kColumns, 12, WeightFormat::kFp8Rows});
    fp8.weight.code_byte(4, 63) = 0x7f;  // NaN
    fp8.weight.code_byte(5, 0) = 0xff;
    fp8.weight.code_byte(6, 1) = 0x80;  // -0
    for (Case* c : {&mxfp4, &fp8}) {
      Matrix probe = c->before;
      const auto rows = rows_for(c->op(probe));
      const Matrix expected = c->run(*rows[0], 1);
      for (const Kernel<MatMul>* row : rows) {
        const Matrix y = c->run(*row, 1);
        for (int64_t t = 0; t < n_tokens; ++t) {
          for (int64_t out = 0; out < 12; ++out) {
            const float a = y(t, out), e = expected(t, out);
            EXPECT_EQ(std::isnan(a), std::isnan(e)) << row->name << " row " << out << ": " << a;
            if (std::isfinite(e)) {
              EXPECT_NEAR(a, e, 1e-4 * std::abs(e) + 1e-5) << row->name;
            }
          }
        }
      }
    }
    Matrix y = mxfp4.before;
    run_row(*rows_for(mxfp4.op(y))[0], mxfp4.op(y), 1);
    EXPECT_TRUE(std::isnan(y(0, 2)));
    EXPECT_EQ(y(0, 3), 0.0f);
  }
}

}  // namespace
}  // namespace bascule
