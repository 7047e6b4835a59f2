#include "kernels/indexer.h"

#include <fmt/format.h>

#include <limits>

#include "kernels/cpu/top_k.h"
#include "kernels/paged_test.h"
#include "kernels/pointwise.h"
#include "kernels/reference/rows.h"
#include "kernels/row_test.h"

namespace bascule {
namespace {

struct Shape {
  int64_t n_tokens = 1, n_heads = 4, d_index = 16, topk = 5, n_positions = 70;
  Dtype key_type = Dtype::kBf16;
};

std::string text(const Shape& s) {
  return fmt::format("{} tokens, {} heads of {}, {} of up to {} keys {}", s.n_tokens, s.n_heads,
                     s.d_index, s.topk, s.n_positions, name(s.key_type));
}

struct Case {
  explicit Case(const Shape& s)
      : shape(s),
        pages(2, s.n_positions, s.d_index, s.key_type),
        q(Matrix::random(s.n_tokens, s.n_heads * s.d_index, Dtype::kF32, 1)),
        weights(Matrix::random(s.n_tokens, s.n_heads, Dtype::kF32, 2)) {
    std::mt19937 engine(3);
    for (int64_t t = 0; t < s.n_tokens; ++t) {
      position.push_back(int32_t(t == 0 ? s.n_positions - 1 : engine() % s.n_positions));
      sequence.push_back(int32_t(engine() % 2));
    }
  }

  // Small integers and a scale of a power of two: every score is exact in any order of summation,
  // and many are equal.
  void make_exact() {
    std::mt19937 engine(4);
    for (int64_t t = 0; t < shape.n_tokens; ++t) {
      for (int64_t i = 0; i < q.n_columns(); ++i) q.set(t, i, float(engine() % 3) - 1);
      for (int64_t h = 0; h < shape.n_heads; ++h) weights.set(t, h, float(engine() % 5) - 2);
    }
    for (int64_t sequence : {0, 1})
      for (int64_t s = 0; s < shape.n_positions; ++s)
        for (int64_t d = 0; d < shape.d_index; ++d)
          store(pages.row(sequence, s), shape.key_type, d, float(engine() % 3) - 1);
  }

  SelectKeys op(std::vector<int32_t>& selected) {
    const View<float, 2> rows = q.view<float>();
    return {.q = {rows.data,
                  {shape.n_tokens, shape.n_heads, shape.d_index},
                  {rows.stride[0], shape.d_index, 1}},
            .weights = weights.view<float>(),
            .weight_scale = 0.25f,
            .keys = pages.cache(),
            .places = pages.places(position, sequence),
            .selected = View<int32_t, 2>::packed(selected.data(), {shape.n_tokens, shape.topk}),
            .max_context = shape.n_positions};
  }
  std::vector<int32_t> output() const {
    return std::vector<int32_t>(size_t(shape.n_tokens * shape.topk), -7);
  }
  std::vector<int32_t> run(const Kernel<SelectKeys>& row, int n_threads) {
    std::vector<int32_t> selected = output();
    run_row(row, op(selected), n_threads);
    return selected;
  }
  double score(int64_t t, int64_t s) const {
    double sum = 0;
    for (int64_t h = 0; h < shape.n_heads; ++h) {
      double product = 0;
      for (int64_t d = 0; d < shape.d_index; ++d)
        product += double(q(t, h * shape.d_index + d)) *
                   load(pages.row(sequence[size_t(t)], s), shape.key_type, d);
      sum += 0.25 * weights(t, h) * std::max(0.0, product);
    }
    return sum;
  }

  Shape shape;
  TestPages pages;
  Matrix q, weights;
  std::vector<int32_t> position, sequence;
};

std::vector<const Kernel<SelectKeys>*> rows_of(Case& c) {
  std::vector<int32_t> probe = c.output();
  return rows_for(c.op(probe));
}

// The row's keys are ascending, distinct and no worse than those it left, up to the rounding of a
// score; and what has no key is -1.
void expect_best_keys(Case& c, const std::vector<int32_t>& selected, const std::string& what) {
  for (int64_t t = 0; t < c.shape.n_tokens; ++t) {
    const int32_t* keys = selected.data() + t * c.shape.topk;
    const int64_t n_keys = c.position[size_t(t)] + 1, n = std::min(n_keys, c.shape.topk);
    std::vector<bool> taken(size_t(n_keys), false);
    double worst = INFINITY, largest = 0;
    for (int64_t i = 0; i < c.shape.topk; ++i) {
      if (i >= n) {
        ASSERT_EQ(keys[i], -1) << what << ", token " << t << " at " << i;
        continue;
      }
      ASSERT_TRUE(keys[i] >= 0 && keys[i] < n_keys) << what << ": " << keys[i];
      ASSERT_TRUE(i == 0 || keys[i] > keys[i - 1]) << what << ", token " << t << " at " << i;
      taken[size_t(keys[i])] = true;
      worst = std::min(worst, c.score(t, keys[i]));
    }
    for (int64_t s = 0; s < n_keys; ++s) largest = std::max(largest, std::abs(c.score(t, s)));
    for (int64_t s = 0; s < n_keys; ++s) {
      if (taken[size_t(s)]) continue;
      ASSERT_LE(c.score(t, s), worst + 1e-6 * largest) << what << ", token " << t << ", key " << s;
    }
  }
}

TEST(SelectKeys, EveryRowTakesTheBestKeysInEveryBand) {
  for (const int64_t n_tokens : kTokensOfEveryBand) {
    for (const Dtype keys : {Dtype::kF32, Dtype::kBf16}) {
      Case c({.n_tokens = n_tokens, .key_type = keys});
      for (const Kernel<SelectKeys>* row : rows_of(c))
        expect_best_keys(c, c.run(*row, 2), row->name + ", " + text(c.shape));
    }
  }
}

TEST(SelectKeys, EveryRowTakesTheBestKeysAtOddSizes) {
  for (const int64_t n_heads : {1, 3, 32, 64, 100}) {
    for (const int64_t d_index : {1, 7, 33, 128}) {
      Case c({.n_tokens = 3, .n_heads = n_heads, .d_index = d_index});
      for (const Kernel<SelectKeys>* row : rows_of(c))
        expect_best_keys(c, c.run(*row, 3), row->name + ", " + text(c.shape));
    }
  }
  for (const int64_t n_positions : {1, 255, 256, 257, 513}) {
    for (const int64_t topk : {1, 64, 256, 600}) {
      Case c({.n_tokens = 2, .topk = topk, .n_positions = n_positions});
      for (const Kernel<SelectKeys>* row : rows_of(c))
        expect_best_keys(c, c.run(*row, 2), row->name + ", " + text(c.shape));
    }
  }
}

// Exact scores, many of them equal: then every row has the very keys of the reference.
// https://github.com/jundot/omlx/pull/2243: ties that fell by racing made temperature 0
// unrepeatable and replicas disagree.
TEST(SelectKeys, TiesGoToTheLowestPositionInEveryRowAndRun) {
  for (const int64_t n_tokens : {1, 2, 40}) {
    Case c({.n_tokens = n_tokens, .n_heads = 3, .topk = 24, .n_positions = 700});
    c.make_exact();
    const auto rows = rows_of(c);
    const std::vector<int32_t> expected = c.run(*rows[0], 1);
    for (const Kernel<SelectKeys>* row : rows)
      for (int run = 0; run < 20; ++run)
        ASSERT_EQ(c.run(*row, 1 + run % 3), expected) << row->name << ", run " << run;
  }
}

TEST(SelectKeys, ATokensKeysDependOnNothingBesideIt) {
  Case all({.n_tokens = 33, .topk = 20, .n_positions = 300});
  for (const Kernel<SelectKeys>* row : rows_of(all)) {
    if (row->grade == Grade::kReference) continue;
    std::vector<int32_t> alone = all.output();
    for (int64_t t = 0; t < all.shape.n_tokens; ++t) {
      SelectKeys one = all.op(alone);
      one.q = one.q.slice(t, 1);
      one.weights = one.weights.slice(t, 1);
      one.places.position = one.places.position.slice(t, 1);
      one.places.sequence = one.places.sequence.slice(t, 1);
      one.selected = one.selected.slice(t, 1);
      run_row(*row, one, int(1 + t % 3));
    }
    for (const int n_threads : {1, 2, 3}) EXPECT_EQ(all.run(*row, n_threads), alone) << row->name;
  }
}

TEST(SelectKeys, AKeyOfNaNIsTakenLast) {
  Case c({.topk = 69});
  c.make_exact();
  store(c.pages.row(c.sequence[0], 30), c.shape.key_type, 0, NAN);
  for (const Kernel<SelectKeys>* row : rows_of(c)) {
    const std::vector<int32_t> selected = c.run(*row, 2);
    EXPECT_EQ(std::ranges::find(selected, 30), selected.end()) << row->name;
    EXPECT_EQ(selected.back(), 69) << row->name;
  }
}

// https://github.com/sgl-project/sglang/issues/35201 and
// https://github.com/NVIDIA/TensorRT-LLM/pull/15459: a score of each token and key at once filled
// the memory in the middle of a long prefill.
TEST(SelectKeys, WorkspaceDoesNotGrowWithTheTokens) {
  Case one({.n_tokens = 1}), many({.n_tokens = 300});
  for (const Kernel<SelectKeys>& row : registry().rows<SelectKeys>()) {
    if (!row.scratch_bytes) continue;
    std::vector<int32_t> a = one.output(), b = many.output();
    SelectKeys wide = many.op(b);
    EXPECT_EQ(row.scratch_bytes(one.op(a)), row.scratch_bytes(wide)) << row.name;
    wide.max_context = 1 << 20;
    EXPECT_LE(row.scratch_bytes(wide), 5 << 20) << row.name;
  }
}

// The indexer rotates the first d_rope of its d_index, pairs interleaved (GLM-5.2) or in halves
// (DeepSeek-V3.2). https://github.com/huggingface/transformers/pull/46842,
// https://github.com/ikawrakow/ik_llama.cpp/pull/2099,
// https://github.com/ml-explore/mlx-lm/pull/1431, https://github.com/sgl-project/sglang/pull/13439,
// https://github.com/ggml-org/llama.cpp/pull/25407: with the wrong layout all is well below
// index_topk and garbage above.
TEST(IndexerRope, ScoresOfEachLayoutMatchDoubleAndThoseOfTheOtherDoNot) {
  constexpr int64_t kDim = 128, kRope = 64;
  const Matrix q = Matrix::random(1, kDim, Dtype::kF32, 1),
               k = Matrix::random(1, kDim, Dtype::kF32, 2);
  std::vector<float> frequency;
  for (int64_t j = 0; j < kRope / 2; ++j)
    frequency.push_back(float(std::pow(8e6, -double(2 * j) / kRope)));
  // q · k after rotating q to `query` and k to `key`, in double.
  const auto expected_score = [&](bool interleaved, double query, double key) {
    double sum = 0;
    for (int64_t d = kRope; d < kDim; ++d) sum += double(q(0, d)) * k(0, d);
    for (int64_t j = 0; j < kRope / 2; ++j) {
      const int64_t a = interleaved ? 2 * j : j, b = interleaved ? 2 * j + 1 : j + kRope / 2;
      const double angle = (query - key) * double(frequency[size_t(j)]);
      const double qa = q(0, a), qb = q(0, b), ka = k(0, a), kb = k(0, b);
      sum += (qa * ka + qb * kb) * std::cos(angle) + (qa * kb - qb * ka) * std::sin(angle);
    }
    return sum;
  };
  const auto rotated = [&](const Kernel<Rope>& row, const Matrix& x, bool interleaved,
                           int32_t position) {
    Matrix y = x, cos(1, kRope / 2), sin(1, kRope / 2);
    run_row(
        registry().rows<RopeTable>()[0],
        RopeTable{.position = View<const int32_t, 1>::packed(&position, {1}),
                  .inverse_frequency = View<const float, 1>::packed(frequency.data(), {kRope / 2}),
                  .cos = cos.view<float>(),
                  .sin = sin.view<float>()});
    run_row(row, Rope{.x = {y.view<float>().data, {1, 1, kRope}, {kDim, kDim, 1}},
                      .cos = cos.view<float>(),
                      .sin = sin.view<float>(),
                      .interleaved = interleaved});
    return y;
  };
  for (const Kernel<Rope>& row : registry().rows<Rope>()) {
    for (const bool interleaved : {true, false}) {
      for (const int32_t position : {1, 2047, 200000}) {
        const Matrix a = rotated(row, q, interleaved, position),
                     b = rotated(row, k, interleaved, 0);
        double score = 0;
        for (int64_t d = 0; d < kDim; ++d) score += double(a(0, d)) * b(0, d);
        EXPECT_NEAR(score, expected_score(interleaved, position, 0), 2e-5)
            << row.name << " at " << position;
        EXPECT_GT(std::abs(score - expected_score(!interleaved, position, 0)), 1e-2)
            << row.name << " at " << position;
      }
    }
  }
}

// By a full sort: the definition that both top_k are held against.
std::vector<int32_t> sorted_top_k(const std::vector<float>& scores, int64_t k) {
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto rank = [&](int32_t i) {
    return std::isnan(scores[size_t(i)]) ? std::pair(0, 0.0f) : std::pair(1, scores[size_t(i)]);
  };
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) { return rank(a) > rank(b); });
  order.resize(std::min(order.size(), size_t(k)));
  std::ranges::sort(order);
  return order;
}

void expect_top_k(const std::vector<float>& scores, int64_t k, const std::string& what) {
  const std::vector<int32_t> expected = sorted_top_k(scores, k);
  std::vector<int32_t> radix(expected.size(), -7), plain(expected.size(), -7);
  std::vector<uint32_t> counts(cpu::kTopKCounts);
  cpu::top_k(scores.data(), int64_t(scores.size()), k, radix.data(), counts.data());
  reference::top_k(scores.data(), int64_t(scores.size()), k, plain.data());
  EXPECT_EQ(radix, expected) << what;
  EXPECT_EQ(plain, expected) << what;
}

// https://github.com/sgl-project/sglang/pull/30645 and
// https://github.com/sgl-project/sglang/issues/35257: thousands of equal scores overflowed a buffer
// of candidates; slots stayed unwritten or larger values were dropped.
TEST(TopK, ManyEqualScoresFillEverySlotWithTheRightKeys) {
  constexpr int64_t kLength = 9000, kTop = 2048;
  std::vector<float> scores(kLength, 0.0f);
  expect_top_k(scores, kTop, "all zero");
  for (int i = 0; i < 64; ++i) scores[size_t(i * 137)] = 1 + float(i);
  expect_top_k(scores, kTop, "64 winners and zeros");
  std::ranges::fill(scores, 3.25f);
  expect_top_k(scores, kTop, "all equal");
  for (size_t i = 0; i < scores.size(); ++i)
    scores[i] = i % 9 < 5 ? 1.0f : std::nextafter(1.0f, 2.0f);
  expect_top_k(scores, kTop, "two values one ulp apart");
  for (size_t i = 0; i < scores.size(); ++i) scores[i] = float(i);
  expect_top_k(scores, kTop, "ascending");
  for (size_t i = 0; i < scores.size(); ++i) scores[i] = -float(i);
  expect_top_k(scores, kTop, "descending");
  for (size_t i = 0; i < scores.size(); ++i) scores[i] = i % 2 ? -0.0f : 0.0f;
  expect_top_k(scores, kTop, "zeros of both signs");
}

TEST(TopK, NaNAndInfinitiesHaveTheirPlaces) {
  const float inf = std::numeric_limits<float>::infinity(), nan = NAN;
  const std::vector<float> scores = {nan, -inf, inf, 0, -nan, -1, -inf, inf, 1e-45f, -1e-45f};
  for (int64_t k = 0; k <= 11; ++k) expect_top_k(scores, k, fmt::format("k = {}", k));
  expect_top_k(std::vector<float>(50, nan), 7, "all NaN");
}

TEST(TopK, AMillionScoresMatchAFullSort) {
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  std::vector<float> scores(1000000);
  for (float& s : scores) s = normal(engine);
  expect_top_k(scores, 2048, "normal");
  for (float& s : scores) s = std::max(0.0f, rounded_to_bf16(s));
  expect_top_k(scores, 2048, "rounded to bf16, half of them zero");
}

}  // namespace
}  // namespace bascule
