#include "kernels/pointwise.h"

#include <fmt/format.h>

#include "kernels/cache_write.h"
#include "kernels/paged_test.h"
#include "kernels/row_test.h"

namespace bascule {
namespace {

// Every row of the op that op_on(output) makes, against the reference; then each token alone
// against all of them, bit for bit. one_token(op, t) is the op on token t.
template <typename OpOn, typename OneToken>
void expect_rows_match(const Matrix& before, OpOn op_on, OneToken one_token,
                       const std::string& shape) {
  Matrix expected = before;
  const auto op = op_on(expected);
  const auto rows = rows_for(op);
  run_row(*rows[0], op, 1);
  for (const auto* row : rows) {
    const std::string what = fmt::format("{}, {}", row->name, shape);
    Matrix alone = before;
    for (int64_t t = 0; t < op.n_tokens(); ++t) run_row(*row, one_token(op_on(alone), t), 1);
    for (const int n_threads : {1, 3}) {
      Matrix y = before;
      run_row(*row, op_on(y), n_threads);
      expect_close(y, expected, what);
      EXPECT_TRUE(y.borders_are_untouched()) << what;
      EXPECT_TRUE(y.same_bits(alone)) << what;
    }
  }
}

constexpr Dtype kTableTypes[] = {Dtype::kF32, Dtype::kBf16, Dtype::kF16};
const std::vector<int64_t> kSomeTokens = {1, 2, 5, 17, 40};

TEST(Embed, EveryRowLooksUpItsTokens) {
  for (const Dtype dtype : kTableTypes) {
    for (const int64_t n_columns : kOddSizes) {
      Matrix table = Matrix::random(11, n_columns, dtype, 1);
      const std::vector<int32_t> tokens = {0, 10, 3, 3, 7, 1};
      const auto op_on = [&](Matrix& y) {
        return Embed{.tokens = View<const int32_t, 1>::packed(tokens.data(), {6}),
                     .table = table.tensor(),
                     .y = y.view<float>()};
      };
      const auto one = [](Embed op, int64_t t) {
        op.tokens = op.tokens.slice(t, 1);
        op.y = op.y.slice(t, 1);
        return op;
      };
      expect_rows_match(Matrix(6, n_columns), op_on, one,
                        fmt::format("{} columns {}", n_columns, name(dtype)));
    }
  }
}

TEST(RmsNorm, EveryRowMatchesTheReference) {
  for (const Dtype dtype : kTableTypes) {
    for (const Dtype out : {Dtype::kF32, Dtype::kBf16}) {
      for (const int64_t n_columns : kOddSizes) {
        for (const int64_t n_tokens : kSomeTokens) {
          Matrix x = Matrix::random(n_tokens, n_columns, Dtype::kF32, 1, 3);
          Matrix weight = Matrix::random(1, n_columns, dtype, 2);
          const auto op_on = [&](Matrix& y) {
            return RmsNorm{.x = x.view<float>(),
                           .weight = Tensor<1>::packed(weight.tensor().data, dtype, {n_columns}),
                           .eps = 1e-5f,
                           .y = y.tensor()};
          };
          const auto one = [](RmsNorm op, int64_t t) {
            op.x = op.x.slice(t, 1);
            op.y = op.y.slice(t, 1);
            return op;
          };
          expect_rows_match(Matrix(n_tokens, n_columns, out), op_on, one,
                            fmt::format("{} tokens of {}, weight {} to {}", n_tokens, n_columns,
                                        name(dtype), name(out)));
        }
      }
    }
  }
}

TEST(RmsNorm, MayOverwriteItsInput) {
  const Matrix x = Matrix::random(3, 70, Dtype::kF32, 1);
  Matrix weight = Matrix::random(1, 70, Dtype::kBf16, 2);
  const auto op = [&](const Matrix& from, Matrix& to) {
    return RmsNorm{.x = const_cast<Matrix&>(from).view<float>(),
                   .weight = Tensor<1>::packed(weight.tensor().data, Dtype::kBf16, {70}),
                   .eps = 1e-5f,
                   .y = to.tensor()};
  };
  for (const Kernel<RmsNorm>& row : registry().rows<RmsNorm>()) {
    Matrix apart(3, 70), in_place = x;
    if (row.refuses && row.refuses(op(x, apart), Machine::detect())) continue;
    run_row(row, op(x, apart));
    run_row(row, op(in_place, in_place));
    EXPECT_TRUE(in_place.same_bits(apart)) << row.name;
  }
}

TEST(LayerNorm, EveryRowMatchesTheReference) {
  for (const Dtype dtype : kTableTypes) {
    for (const int64_t n_columns : {2, 3, 7, 8, 9, 31, 33, 64, 127, 128, 257}) {
      for (const int64_t n_tokens : kSomeTokens) {
        Matrix x = Matrix::random(n_tokens, n_columns, Dtype::kF32, 1, 3);
        Matrix weight = Matrix::random(1, n_columns, dtype, 2);
        Matrix bias = Matrix::random(1, n_columns, dtype, 3);
        const auto op_on = [&](Matrix& y) {
          return LayerNorm{.x = x.view<float>(),
                           .weight = Tensor<1>::packed(weight.tensor().data, dtype, {n_columns}),
                           .bias = Tensor<1>::packed(bias.tensor().data, dtype, {n_columns}),
                           .eps = 1e-6f,
                           .y = y.view<float>()};
        };
        const auto one = [](LayerNorm op, int64_t t) {
          op.x = op.x.slice(t, 1);
          op.y = op.y.slice(t, 1);
          return op;
        };
        expect_rows_match(Matrix(n_tokens, n_columns), op_on, one,
                          fmt::format("{} tokens of {}, {}", n_tokens, n_columns, name(dtype)));
      }
    }
  }
}

// A mean far above the spread: the sum of squares must not be taken about zero.
TEST(LayerNorm, KeepsItsPrecisionFarFromZero) {
  Matrix x(1, 128), weight = Matrix::random(1, 128, Dtype::kF32, 1), bias(1, 128);
  for (int64_t i = 0; i < 128; ++i) {
    x.set(0, i, 4096 + float(i % 2));
    bias.set(0, i, 0);
  }
  for (const Kernel<LayerNorm>& row : registry().rows<LayerNorm>()) {
    Matrix y(1, 128);
    const LayerNorm op = {.x = x.view<float>(),
                          .weight = Tensor<1>::packed(weight.tensor().data, Dtype::kF32, {128}),
                          .bias = Tensor<1>::packed(bias.tensor().data, Dtype::kF32, {128}),
                          .eps = 0,
                          .y = y.view<float>()};
    if (row.refuses && row.refuses(op, Machine::detect())) continue;
    run_row(row, op);
    for (int64_t i = 0; i < 128; ++i)
      EXPECT_NEAR(y(0, i), i % 2 ? weight(0, i) : -weight(0, i), 1e-4) << row.name;
  }
}

// Angles of the frequencies as floats, as the checkpoint's family computes them, in long double.
TEST(RopeTable, EveryRowIsWithinAMillionthAtFarPositions) {
  constexpr int64_t kHalf = 32;
  std::vector<float> frequency;
  for (int64_t j = 0; j < kHalf; ++j)
    frequency.push_back(float(std::pow(8e6, -double(2 * j) / (2 * kHalf))));
  std::vector<int32_t> position = {0, 1, 2047, 65535, 200000, 999999, 1000000, 1048575};
  for (int32_t p = 0; p < 1048576; p += 9973) position.push_back(p);
  const int64_t n = int64_t(position.size());
  for (const Kernel<RopeTable>& row : registry().rows<RopeTable>()) {
    for (const float magnitude : {1.0f, 1.25f}) {
      Matrix cos(n, kHalf), sin(n, kHalf);
      run_row(
          row,
          RopeTable{.position = View<const int32_t, 1>::packed(position.data(), {n}),
                    .inverse_frequency = View<const float, 1>::packed(frequency.data(), {kHalf}),
                    .magnitude = magnitude,
                    .cos = cos.view<float>(),
                    .sin = sin.view<float>()},
          3);
      for (int64_t t = 0; t < n; ++t) {
        for (int64_t j = 0; j < kHalf; ++j) {
          const long double angle = (long double)(position[size_t(t)]) * frequency[size_t(j)];
          ASSERT_NEAR(cos(t, j), magnitude * std::cos(angle), 1e-6) << row.name << " at " << t;
          ASSERT_NEAR(sin(t, j), magnitude * std::sin(angle), 1e-6) << row.name << " at " << t;
        }
      }
      EXPECT_TRUE(cos.borders_are_untouched() && sin.borders_are_untouched()) << row.name;
    }
  }
}

// x rotated by far angles, in both layouts, against a rotation in long double.
TEST(Rope, EveryRowRotatesPairsOfBothLayouts) {
  for (const auto& [n_heads, d_rope] : {std::pair(1, 2), {3, 6}, {64, 64}, {5, 10}}) {
    const int64_t half = d_rope / 2, n = 19;
    const Matrix x = Matrix::random(n, n_heads * d_rope, Dtype::kF32, 1);
    Matrix cos(n, half), sin(n, half);
    std::vector<long double> angles;
    for (int64_t t = 0; t < n; ++t) {
      for (int64_t j = 0; j < half; ++j) {
        const long double angle =
            (long double)(1048575 - t) * std::pow(1e4L, -(long double)(j) / half);
        angles.push_back(angle);
        cos.set(t, j, float(std::cos(angle)));
        sin.set(t, j, float(std::sin(angle)));
      }
    }
    for (const Kernel<Rope>& row : registry().rows<Rope>()) {
      for (const bool interleaved : {true, false}) {
        Matrix y = x;
        const View<float, 2> rows = y.view<float>();
        run_row(row, Rope{.x = {rows.data, {n, n_heads, d_rope}, {rows.stride[0], d_rope, 1}},
                          .cos = cos.view<float>(),
                          .sin = sin.view<float>(),
                          .interleaved = interleaved});
        for (int64_t t = 0; t < n; ++t) {
          for (int64_t h = 0; h < n_heads; ++h) {
            for (int64_t j = 0; j < half; ++j) {
              const int64_t a = h * d_rope + (interleaved ? 2 * j : j);
              const int64_t b = h * d_rope + (interleaved ? 2 * j + 1 : j + half);
              const long double c = std::cos(angles[size_t(t * half + j)]);
              const long double s = std::sin(angles[size_t(t * half + j)]);
              ASSERT_NEAR(y(t, a), x(t, a) * c - x(t, b) * s, 1e-6) << row.name << ' ' << t;
              ASSERT_NEAR(y(t, b), x(t, b) * c + x(t, a) * s, 1e-6) << row.name << ' ' << t;
            }
          }
        }
        EXPECT_TRUE(y.borders_are_untouched()) << row.name;
      }
    }
  }
}

TEST(CacheWrite, EveryRowWritesItsRowsAndNothingElse) {
  for (const Dtype dtype : {Dtype::kF32, Dtype::kBf16}) {
    for (const int64_t width : kOddSizes) {
      Matrix x = Matrix::random(20, width, Dtype::kF32, 1);
      std::vector<int32_t> position, sequence;
      for (int32_t t = 0; t < 20; ++t) {
        position.push_back(t * 3 % 23);  // all different
        sequence.push_back(t % 2);
      }
      const TestPages before(2, 23, width, dtype);
      for (const Kernel<CacheWrite>& row : registry().rows<CacheWrite>()) {
        TestPages pages(2, 23, width, dtype), expected(2, 23, width, dtype);
        const CacheWrite op = {.x = x.view<float>(),
                               .cache = pages.cache(),
                               .places = pages.places(position, sequence)};
        if (row.refuses && row.refuses(op, Machine::detect())) continue;
        run_row(row, op, 2);
        for (int64_t t = 0; t < 20; ++t)
          for (int64_t i = 0; i < width; ++i)
            store(expected.row(sequence[size_t(t)], position[size_t(t)]), dtype, i, x(t, i));
        EXPECT_EQ(pages.bytes(), expected.bytes()) << row.name << ' ' << width << name(dtype);
        EXPECT_NE(pages.bytes(), before.bytes());
      }
    }
  }
}

TEST(CacheWrite, RoundsToTheNearestAndKeepsNaN) {
  const float ties[] = {1.00390625f, 1.01171875f, -1.00390625f, 3.4e38f, 1e-40f, NAN, INFINITY, 0};
  Matrix x(1, 8);
  for (int64_t i = 0; i < 8; ++i) x.set(0, i, ties[i]);
  const std::vector<int32_t> zero = {0};
  for (const Kernel<CacheWrite>& row : registry().rows<CacheWrite>()) {
    TestPages pages(1, 1, 8, Dtype::kBf16);
    const CacheWrite op = {
        .x = x.view<float>(), .cache = pages.cache(), .places = pages.places(zero, zero)};
    if (row.refuses && row.refuses(op, Machine::detect())) continue;
    run_row(row, op);
    for (int64_t i = 0; i < 8; ++i) {
      const uint16_t bits = static_cast<const uint16_t*>(pages.row(0, 0))[i];
      EXPECT_EQ(bits, to_bf16(ties[i]).bits) << row.name << " of " << ties[i];
    }
  }
}

}  // namespace
}  // namespace bascule
