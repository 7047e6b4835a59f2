#include "kernels/attention.h"

#include <fmt/format.h>

#include "kernels/paged_test.h"
#include "kernels/row_test.h"

namespace bascule {
namespace {

struct Shape {
  int64_t n_tokens = 1, n_heads = 3, kv_rank = 32, d_nope = 12, d_rope = 8, d_v = 10, topk = 7;
  WeightFormat format = WeightFormat::kBf16;
  Dtype cache_type = Dtype::kBf16, out_type = Dtype::kF32;
};

std::string text(const Shape& s) {
  return fmt::format(
      "{} tokens, {} heads of {} + {} to {}, rank {}, {} keys, kv_b {}, cache {}, o {}", s.n_tokens,
      s.n_heads, s.d_nope, s.d_rope, s.d_v, s.kv_rank, s.topk, name(s.format), name(s.cache_type),
      name(s.out_type));
}

// Tokens of two sequences that stand anywhere; each has selected keys up to its own.
struct Case {
  static constexpr int64_t kPositions = 90;

  explicit Case(const Shape& s)
      : shape(s),
        pages(2, kPositions, s.kv_rank + s.d_rope, s.cache_type),
        q(Matrix::random(s.n_tokens, s.n_heads * (s.d_nope + s.d_rope), Dtype::kF32, 1)),
        kv_b(s.n_heads * (s.d_nope + s.d_v), s.kv_rank, s.format, 2,
             1 / std::sqrt(float(s.kv_rank))),
        selected(size_t(s.n_tokens * s.topk), -1) {
    std::mt19937 engine(3);
    for (int64_t t = 0; t < s.n_tokens; ++t) {
      position.push_back(int32_t(engine() % kPositions));
      sequence.push_back(int32_t(engine() % 2));
      std::vector<int32_t> keys(size_t(position.back()) + 1);
      std::iota(keys.begin(), keys.end(), 0);
      std::shuffle(keys.begin(), keys.end(), engine);
      keys.resize(std::min(keys.size(), size_t(s.topk)));
      std::sort(keys.begin(), keys.end());
      std::copy(keys.begin(), keys.end(), selected.begin() + t * s.topk);
    }
  }

  SparseMla op(Matrix& o) {
    const int64_t d_q = shape.d_nope + shape.d_rope;
    const View<float, 2> rows = q.view<float>();
    return {
        .q = {rows.data, {shape.n_tokens, shape.n_heads, d_q}, {rows.stride[0], d_q, 1}},
        .kv_b = *kv_b,
        .cache = pages.cache(),
        .places = pages.places(position, sequence),
        .selected = View<const int32_t, 2>::packed(selected.data(), {shape.n_tokens, shape.topk}),
        .d_nope = shape.d_nope,
        .d_rope = shape.d_rope,
        .d_v = shape.d_v,
        .scale = 1 / std::sqrt(float(d_q)),
        .o = o.tensor()};
  }
  Matrix output() const {
    return Matrix(shape.n_tokens, shape.n_heads * shape.d_v, shape.out_type);
  }
  Matrix run(const Kernel<SparseMla>& row, int n_threads) {
    Matrix o = output();
    run_row(row, op(o), n_threads);
    return o;
  }
  Matrix run_alone(const Kernel<SparseMla>& row) {
    Matrix o = output();
    for (int64_t t = 0; t < shape.n_tokens; ++t) {
      SparseMla one = op(o);
      one.q = one.q.slice(t, 1);
      one.places.position = one.places.position.slice(t, 1);
      one.places.sequence = one.places.sequence.slice(t, 1);
      one.selected = one.selected.slice(t, 1);
      one.o = one.o.slice(t, 1);
      run_row(row, one, 1);
    }
    return o;
  }

  Shape shape;
  TestPages pages;
  Matrix q;
  StoredWeight kv_b;
  std::vector<int32_t> position, sequence, selected;
};

void expect_rows_match(const Shape& shape) {
  Case c(shape);
  Matrix probe = c.output();
  const auto rows = rows_for(c.op(probe));
  const Matrix expected = c.run(*rows[0], 1);
  for (const Kernel<SparseMla>* row : rows) {
    const Matrix o = c.run(*row, 2);
    const std::string what = fmt::format("{}, {}", row->name, text(shape));
    expect_close(o, expected, what);
    EXPECT_TRUE(o.borders_are_untouched()) << what;
  }
}

// The absorbed and the expanded form among them.
TEST(SparseMla, EveryRowMatchesTheReferenceInEveryBandAndType) {
  for (const int64_t n_tokens : kTokensOfEveryBand)
    for (const WeightFormat w : kWeightFormats)
      expect_rows_match({.n_tokens = n_tokens, .format = w});
  for (const Dtype cache : {Dtype::kF32, Dtype::kBf16})
    for (const Dtype out : {Dtype::kF32, Dtype::kBf16})
      expect_rows_match({.n_tokens = 9, .cache_type = cache, .out_type = out});
}

TEST(SparseMla, EveryRowMatchesTheReferenceAtOddSizes) {
  for (const int64_t n_heads : {1, 2, 5, 16, 17, 64})
    for (const int64_t n_tokens : {1, 3}) expect_rows_match({n_tokens, n_heads});
  for (const WeightFormat w : {WeightFormat::kBf16, WeightFormat::kFp8Blocks, WeightFormat::kMxfp4})
    for (const int64_t size : {1, 3, 7, 9, 31, 33, 63, 65, 127, 200})
      expect_rows_match({.n_tokens = 2, .kv_rank = size, .d_nope = size, .d_v = size, .format = w});
  for (const int64_t topk : {1, 2, 8, 31, 64, 89, 90, 200})
    expect_rows_match({.n_tokens = 4, .topk = topk});
  expect_rows_match({.n_tokens = 2, .d_rope = 2});
}

TEST(SparseMla, ATokensBitsDependOnNothingBesideIt) {
  for (const int64_t n_tokens : {2, 7, 8, 9, 30}) {
    for (const int64_t n_heads : {1, 5, 16, 20}) {
      Case c({.n_tokens = n_tokens,
              .n_heads = n_heads,
              .kv_rank = 45,
              .topk = 70,
              .format = kWeightFormats[size_t(n_tokens + n_heads) % kWeightFormats.size()]});
      Matrix probe = c.output();
      for (const Kernel<SparseMla>* row : rows_for(c.op(probe))) {
        if (row->grade == Grade::kReference) continue;  // one token after another
        const Matrix alone = c.run_alone(*row);
        for (const int n_threads : {1, 2, 3})
          EXPECT_TRUE(c.run(*row, n_threads).same_bits(alone))
              << row->name << ", " << text(c.shape) << ", " << n_threads << " threads";
      }
    }
  }
}

TEST(SparseMla, ScoresFarApartDoNotOverflow) {
  Case c({.n_tokens = 3});
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t i = 0; i < c.q.n_columns(); ++i) c.q.set(t, i, 1e4f * c.q(t, i));
  Matrix probe = c.output();
  const auto rows = rows_for(c.op(probe));
  const Matrix expected = c.run(*rows[0], 1);
  for (const Kernel<SparseMla>* row : rows) {
    const Matrix o = c.run(*row, 1);
    for (int64_t t = 0; t < 3; ++t)
      for (int64_t i = 0; i < o.n_columns(); ++i)
        EXPECT_NEAR(o(t, i), expected(t, i), 1e-2) << row->name << " at " << t << ", " << i;
  }
}

}  // namespace
}  // namespace bascule
