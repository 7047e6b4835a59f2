#include "kernels/moe.h"

#include <fmt/format.h>

#include <numeric>

#include "kernels/row_test.h"

namespace bascule {
namespace {

struct Shape {
  int64_t n_tokens, slots_per_token, n_experts, d_model, d_ff;
  WeightFormat format = WeightFormat::kBf16;
  Dtype activation_type = Dtype::kBf16;
  int64_t hot_expert = -1;  // every token has it first; -1: none
  Rounding rounding = Rounding::kNone;
};

std::string text(const Shape& s) {
  return fmt::format("{} tokens at {} of {} experts{}, {} to {}, {} weights, {} activations",
                     s.n_tokens, s.slots_per_token, s.n_experts,
                     s.hot_expert < 0 ? "" : ", one of them hot", s.d_model, s.d_ff, name(s.format),
                     name(s.activation_type));
}

// Slots of tokens that chose experts at random, and the weights of those.
struct Case {
  explicit Case(const Shape& s)
      : shape(s),
        x(Matrix::random(s.n_tokens, s.d_model, s.activation_type, 1)),
        act(Matrix::random(s.n_tokens * s.slots_per_token, s.d_ff, s.activation_type, 2)) {
    for (int64_t e = 0; e < s.n_experts; ++e) {
      for (const uint32_t part : {0u, 1u, 2u}) {
        const auto [rows, columns] =
            part == 2 ? std::pair(s.d_model, s.d_ff) : std::pair(s.d_ff, s.d_model);
        matrices.emplace_back(rows, columns, s.format, uint32_t(3 * e) + part,
                              1 / std::sqrt(float(columns)));
      }
    }
    for (int64_t e = 0; e < s.n_experts; ++e)
      experts.push_back({.gate = *matrices[size_t(3 * e)],
                         .up = *matrices[size_t(3 * e) + 1],
                         .down = *matrices[size_t(3 * e) + 2]});
    choose();
  }

  void choose() {
    std::mt19937 engine(5);
    std::vector<int32_t> ids(size_t(shape.n_experts));
    std::iota(ids.begin(), ids.end(), 0);
    std::vector<std::vector<int32_t>> of_expert(ids.size());
    for (int64_t t = 0; t < shape.n_tokens; ++t) {
      std::shuffle(ids.begin(), ids.end(), engine);
      if (shape.hot_expert >= 0)
        std::swap(*std::ranges::find(ids, int32_t(shape.hot_expert)), ids[0]);
      for (int64_t j = 0; j < shape.slots_per_token; ++j)
        of_expert[size_t(ids[size_t(j)])].push_back(int32_t(t * shape.slots_per_token + j));
    }
    begin = {0};
    for (const auto& list : of_expert) {
      slots.insert(slots.end(), list.begin(), list.end());
      begin.push_back(int32_t(slots.size()));
    }
  }

  View<const int32_t, 1> begin_view() const {
    return View<const int32_t, 1>::packed(begin.data(), {int64_t(begin.size())});
  }
  View<const int32_t, 1> slots_view() const {
    return View<const int32_t, 1>::packed(slots.data(), {int64_t(slots.size())});
  }
  ExpertUp op(const ExpertUp*, Matrix& out) {
    return {.x = x.tensor(),
            .experts = experts,
            .begin = begin_view(),
            .slots = slots_view(),
            .slots_per_token = shape.slots_per_token,
            .act = out.tensor(),
            .rounding = shape.rounding};
  }
  ExpertDown op(const ExpertDown*, Matrix& out) {
    return {.act = act.tensor(),
            .experts = experts,
            .begin = begin_view(),
            .slots = slots_view(),
            .slots_per_token = shape.slots_per_token,
            .y = out.view<float>(),
            .rounding = shape.rounding};
  }
  Matrix output(const ExpertUp*) const {
    return Matrix(act.n_rows(), shape.d_ff, shape.activation_type);
  }
  Matrix output(const ExpertDown*) const { return Matrix(act.n_rows(), shape.d_model); }

  template <typename Op>
  Matrix run(const Kernel<Op>& row, int n_threads) {
    const Op* tag = nullptr;
    Matrix y = output(tag);
    run_row(row, op(tag, y), n_threads);
    return y;
  }
  // As if each slot were the only one.
  template <typename Op>
  Matrix run_alone(const Kernel<Op>& row) {
    const Op* tag = nullptr;
    Matrix y = output(tag);
    const Case all = *this;
    for (size_t e = 0; e < experts.size(); ++e) {
      for (int32_t i = all.begin[e]; i < all.begin[e + 1]; ++i) {
        slots = {all.slots[size_t(i)]};
        for (size_t b = 0; b < begin.size(); ++b) begin[b] = b > e ? 1 : 0;
        run_row(row, op(tag, y), 1);
      }
    }
    begin = all.begin;
    slots = all.slots;
    return y;
  }

  Shape shape;
  Matrix x, act;
  std::vector<StoredWeight> matrices;
  std::vector<ExpertWeights> experts;
  std::vector<int32_t> begin, slots;
};

template <typename Op>
void expect_rows_match(const Shape& shape) {
  Case c(shape);
  const Op* tag = nullptr;
  Matrix probe = c.output(tag);
  const auto rows = rows_for(c.op(tag, probe));
  const Matrix expected = c.run(*rows[0], 1);
  for (const Kernel<Op>* row : rows) {
    const Matrix y = c.run(*row, 2);
    const std::string what = fmt::format("{}, {}", row->name, text(shape));
    expect_close(y, expected, what);
    EXPECT_TRUE(y.borders_are_untouched()) << what;
  }
}

template <typename Op>
class Expert : public testing::Test {};
using Products = testing::Types<ExpertUp, ExpertDown>;
TYPED_TEST_SUITE(Expert, Products);

TYPED_TEST(Expert, EveryRowMatchesTheReferenceInEveryBandAndType) {
  for (const int64_t n_tokens : kTokensOfEveryBand)
    for (const WeightFormat w : kWeightFormats)
      for (const Dtype x : {Dtype::kF32, Dtype::kBf16})
        expect_rows_match<TypeParam>({n_tokens, 3, 7, 40, 21, w, x});
}

TYPED_TEST(Expert, EveryRowMatchesTheReferenceAtOddSizes) {
  for (const int64_t d_model : kOddSizes)
    for (const int64_t d_ff : {1, 9, 33, 65})
      expect_rows_match<TypeParam>({5, 2, 4, d_model, d_ff});
}

TYPED_TEST(Expert, EveryRowRoundsItsInputAsTheReferenceDoes) {
  for (const int64_t n_tokens : {1, 5, 120}) {
    for (const Rounding rounding : {Rounding::kInt8, Rounding::kFp8Groups, Rounding::kMxfp4})
      expect_rows_match<TypeParam>(
          {n_tokens, 2, 4, 150, 70, WeightFormat::kMxfp4, Dtype::kF32, -1, rounding});
    expect_rows_match<TypeParam>(
        {n_tokens, 2, 4, 150, 70, WeightFormat::kMxfp4Tiles, Dtype::kF32, 1, Rounding::kInt8});
  }
}

TYPED_TEST(Expert, OneHotExpertAndEmptyOnesAreRight) {
  expect_rows_match<TypeParam>({120, 1, 6, 30, 70, WeightFormat::kBf16, Dtype::kBf16, 4});
  expect_rows_match<TypeParam>({120, 2, 40, 30, 70, WeightFormat::kMxfp4, Dtype::kBf16, 0});
  expect_rows_match<TypeParam>({1, 1, 1, 1300, 66});
}

TYPED_TEST(Expert, ASlotsBitsDependOnNothingBesideIt) {
  for (const WeightFormat format : {WeightFormat::kBf16, WeightFormat::kFp8Blocks,
                                    WeightFormat::kMxfp4, WeightFormat::kMxfp4Tiles}) {
    for (const int64_t n_tokens : {3, 10, 110}) {
      Case c({n_tokens, 2, 3, 61, 45, format, Dtype::kBf16, -1,
              format == WeightFormat::kMxfp4Tiles ? Rounding::kInt8 : Rounding::kNone});
      const TypeParam* tag = nullptr;
      Matrix probe = c.output(tag);
      for (const Kernel<TypeParam>* row : rows_for(c.op(tag, probe))) {
        const Matrix alone = c.run_alone(*row);
        for (const int n_threads : {1, 2, 3})
          EXPECT_TRUE(c.run(*row, n_threads).same_bits(alone))
              << row->name << ", " << text(c.shape) << ", " << n_threads << " threads";
      }
    }
  }
}

TYPED_TEST(Expert, SlotsOfOtherRanksAreLeftAsTheyWere) {
  Case c({6, 2, 4, 20, 20});
  c.slots.resize(size_t(c.begin[2]));  // experts 2 and 3 are elsewhere
  c.begin[3] = c.begin[4] = c.begin[2];
  const TypeParam* tag = nullptr;
  Matrix probe = c.output(tag);
  for (const Kernel<TypeParam>* row : rows_for(c.op(tag, probe))) {
    const Matrix y = c.run(*row, 2);
    for (int32_t slot = 0; slot < int32_t(y.n_rows()); ++slot) {
      const bool here = std::ranges::find(c.slots, slot) != c.slots.end();
      EXPECT_NE(std::isnan(y(slot, 0)), here) << row->name << " slot " << slot;
    }
  }
}

TYPED_TEST(Expert, GroupsPastTheExpertsOfThisRankAreNotRead) {
  Case c({6, 2, 3, 20, 20});
  c.begin.insert(c.begin.end(), 40, 1 << 30);  // a buffer made for more experts
  const TypeParam* tag = nullptr;
  Matrix probe = c.output(tag);
  const auto rows = rows_for(c.op(tag, probe));
  const Matrix expected = c.run(*rows[0], 1);
  for (const Kernel<TypeParam>* row : rows) expect_close(c.run(*row, 2), expected, row->name);
}

TEST(ExpertUp, GatesFarFromZeroSaturateAsTheSigmoidDoes) {
  Case c({1, 1, 1, 1, 4, WeightFormat::kF32, Dtype::kF32});
  c.x.set(0, 0, 1);
  for (int64_t r = 0; r < 4; ++r) {
    c.matrices[0].plain().set(r, 0, std::vector<float>{-200, -80, 80, 200}[size_t(r)]);
    c.matrices[1].plain().set(r, 0, 1);
  }
  Matrix probe = c.output((ExpertUp*)nullptr);
  for (const Kernel<ExpertUp>* row : rows_for(c.op((ExpertUp*)nullptr, probe))) {
    const Matrix act = c.run(*row, 1);
    EXPECT_NEAR(act(0, 0), 0, 1e-30) << row->name;
    EXPECT_NEAR(act(0, 1), -80 * std::exp(-80.0), 1e-37) << row->name;
    EXPECT_EQ(act(0, 2), 80) << row->name;
    EXPECT_EQ(act(0, 3), 200) << row->name;
  }
}

struct RouteShape {
  int64_t n_tokens, n_experts, n_active;
  int64_t n_shared = 0, n_groups = 1, n_active_groups = 1;
  bool sigmoid = true, normalise = true, biased = true;
  float scale = 2.5f;
};

struct RouteCase {
  explicit RouteCase(const RouteShape& s)
      : shape(s),
        logits(Matrix::random(s.n_tokens, s.n_experts, Dtype::kF32, 1)),
        bias(Matrix::random(1, s.n_experts, Dtype::kF32, 2, 0.2f)) {}

  struct Choice {
    std::vector<int32_t> experts;
    Matrix weights;
  };
  Route op(Choice& out) {
    const int64_t slots = shape.n_active + shape.n_shared;
    return {.logits = logits.view<float>(),
            .bias = shape.biased
                        ? View<const float, 1>::packed(bias.view<float>().data, {shape.n_experts})
                        : View<const float, 1>{},
            .n_active = shape.n_active,
            .n_groups = shape.n_groups,
            .n_active_groups = shape.n_active_groups,
            .sigmoid = shape.sigmoid,
            .normalise = shape.normalise,
            .scale = shape.scale,
            .experts = View<int32_t, 2>::packed(out.experts.data(), {shape.n_tokens, slots}),
            .weights = out.weights.view<float>()};
  }
  Choice run(const Kernel<Route>& row, int n_threads) {
    const int64_t slots = shape.n_active + shape.n_shared;
    Choice out = {std::vector<int32_t>(size_t(shape.n_tokens * slots), -7),
                  Matrix(shape.n_tokens, slots)};
    run_row(row, op(out), n_threads);
    return out;
  }

  RouteShape shape;
  Matrix logits, bias;
};

void expect_routes_match(RouteCase c, const std::string& what) {
  const RouteCase::Choice expected = c.run(registry().rows<Route>()[0], 1);
  for (const Kernel<Route>& row : registry().rows<Route>()) {
    const RouteCase::Choice choice = c.run(row, 3);
    EXPECT_EQ(choice.experts, expected.experts) << row.name << ", " << what;
    expect_close(choice.weights, expected.weights, row.name + ", " + what);
    EXPECT_TRUE(choice.weights.borders_are_untouched()) << row.name << ", " << what;
  }
}

TEST(Route, EveryRowChoosesTheExpertsOfTheReference) {
  for (const int64_t n_tokens : kTokensOfEveryBand)
    expect_routes_match(RouteCase({n_tokens, 33, 4, 1}), fmt::format("{} tokens", n_tokens));
  for (const bool sigmoid : {true, false})
    for (const bool normalise : {true, false})
      for (const bool biased : {true, false})
        expect_routes_match(RouteCase({.n_tokens = 20,
                                       .n_experts = 24,
                                       .n_active = 6,
                                       .n_groups = 4,
                                       .n_active_groups = 2,
                                       .sigmoid = sigmoid,
                                       .normalise = normalise,
                                       .biased = biased}),
                            fmt::format("{} {} {}", sigmoid, normalise, biased));
  expect_routes_match(RouteCase({7, 256, 8, 1}), "256 experts");
  expect_routes_match(RouteCase({7, 5, 5, 2}), "all of them");
}

TEST(Route, EqualScoresGoToTheLowestIdsAndNaNGoesLast) {
  RouteCase equal({4, 16, 3});
  for (int64_t t = 0; t < 4; ++t)
    for (int64_t e = 0; e < 16; ++e) equal.logits.set(t, e, 0.5f);
  equal.shape.biased = false;
  RouteCase broken({2, 6, 3});
  for (const int64_t e : {0, 2, 4}) broken.logits.set(1, e, NAN);
  for (const Kernel<Route>& row : registry().rows<Route>()) {
    const std::vector<int32_t> experts = equal.run(row, 2).experts;
    for (size_t i = 0; i < experts.size(); ++i) EXPECT_EQ(experts[i], int32_t(i % 3)) << row.name;
    for (const int32_t e : broken.run(row, 1).experts) EXPECT_TRUE(0 <= e && e < 6) << row.name;
    std::vector<int32_t> second = broken.run(row, 1).experts;
    second.erase(second.begin(), second.begin() + 3);
    std::ranges::sort(second);
    EXPECT_EQ(second, (std::vector{1, 3, 5})) << row.name;
  }
}

// The bias chooses and does not weigh; the weights of the chosen sum to the scale.
TEST(Route, TheBiasIsNotInTheWeights) {
  RouteCase c({3, 12, 4});
  for (const Kernel<Route>& row : registry().rows<Route>()) {
    const RouteCase::Choice choice = c.run(row, 1);
    for (int64_t t = 0; t < 3; ++t) {
      double sum = 0, weights = 0;
      const auto sigmoid = [&](int32_t e) { return 1 / (1 + std::exp(-double(c.logits(t, e)))); };
      for (int64_t j = 0; j < 4; ++j) sum += sigmoid(choice.experts[size_t(4 * t + j)]);
      for (int64_t j = 0; j < 4; ++j) {
        weights += choice.weights(t, j);
        EXPECT_NEAR(choice.weights(t, j), 2.5 * sigmoid(choice.experts[size_t(4 * t + j)]) / sum,
                    1e-6)
            << row.name;
      }
      EXPECT_NEAR(weights, 2.5, 1e-6) << row.name;
    }
  }
}

TEST(GroupSlots, EveryRowListsTheSlotsOfItsExpertsAscending) {
  for (const int64_t n_tokens : {1, 2, 50, 300}) {
    for (const auto& [first, n_experts] : {std::pair(0, 9), {3, 2}, {8, 1}, {9, 4}}) {
      std::mt19937 engine{uint32_t(n_tokens)};
      std::vector<int32_t> experts(size_t(n_tokens * 3));
      for (int32_t& e : experts) e = int32_t(engine() % 9);
      for (const Kernel<GroupSlots>& row : registry().rows<GroupSlots>()) {
        std::vector<int32_t> begin(size_t(n_experts) + 2, -7), slots(experts.size() + 1, -7);
        run_row(row,
                GroupSlots{.experts = View<const int32_t, 2>::packed(experts.data(), {n_tokens, 3}),
                           .first_expert = first,
                           .begin = View<int32_t, 1>::packed(begin.data(), {n_experts + 1}),
                           .slots = View<int32_t, 1>::packed(slots.data(), {n_tokens * 3})});
        std::vector<int32_t> expected;
        for (int32_t e = first; e < first + n_experts; ++e) {
          EXPECT_EQ(begin[size_t(e - first)], int32_t(expected.size())) << row.name;
          for (size_t slot = 0; slot < experts.size(); ++slot)
            if (experts[slot] == e) expected.push_back(int32_t(slot));
        }
        EXPECT_EQ(begin[size_t(n_experts)], int32_t(expected.size())) << row.name;
        EXPECT_EQ(begin.back(), -7) << row.name;
        EXPECT_EQ(slots.back(), -7) << row.name;
        slots.resize(expected.size());
        EXPECT_EQ(slots, expected) << row.name;
      }
    }
  }
}

TEST(CombineSlots, EveryRowAddsTheWeightedSlotsToItsToken) {
  for (const int64_t n_tokens : kTokensOfEveryBand) {
    for (const int64_t n_columns : {1, 7, 8, 33, 257}) {
      Matrix y = Matrix::random(n_tokens * 3, n_columns, Dtype::kF32, 1);
      Matrix weights = Matrix::random(n_tokens, 3, Dtype::kF32, 2);
      const Matrix before = Matrix::random(n_tokens, n_columns, Dtype::kF32, 3);
      const auto run = [&](const Kernel<CombineSlots>& row, int n_threads) {
        Matrix h = before;
        run_row(row, CombineSlots{y.view<float>(), weights.view<float>(), h.view<float>()},
                n_threads);
        return h;
      };
      Matrix probe = before;
      const auto rows =
          rows_for(CombineSlots{y.view<float>(), weights.view<float>(), probe.view<float>()});
      const Matrix expected = run(*rows[0], 1);
      for (const Kernel<CombineSlots>* row : rows) {
        const Matrix h = run(*row, 1);
        expect_close(h, expected, row->name);
        EXPECT_TRUE(h.borders_are_untouched()) << row->name;
        EXPECT_TRUE(run(*row, 3).same_bits(h)) << row->name;
      }
    }
  }
}

}  // namespace
}  // namespace bascule
