#include "kernels/moe.h"

#include <fmt/format.h>

#include <numeric>

#include "kernels/row_test.h"

namespace bascule {
namespace {

struct Shape {
  int64_t n_tokens, slots_per_token, n_experts, d_model, d_ff;
  Dtype weight_type = Dtype::kBf16, activation_type = Dtype::kBf16;
  int64_t hot_expert = -1;  // every token has it first; -1: none
};

std::string text(const Shape& s) {
  return fmt::format("{} tokens at {} of {} experts{}, {} to {}, {} weights, {} activations",
                     s.n_tokens, s.slots_per_token, s.n_experts,
                     s.hot_expert < 0 ? "" : ", one of them hot", s.d_model, s.d_ff,
                     name(s.weight_type), name(s.activation_type));
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
        matrices.push_back(Matrix::random(rows, columns, s.weight_type, uint32_t(3 * e) + part,
                                          1 / std::sqrt(float(columns))));
      }
    }
    for (int64_t e = 0; e < s.n_experts; ++e)
      experts.push_back({.gate = matrices[size_t(3 * e)].tensor(),
                         .up = matrices[size_t(3 * e) + 1].tensor(),
                         .down = matrices[size_t(3 * e) + 2].tensor()});
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
            .act = out.tensor()};
  }
  ExpertDown op(const ExpertDown*, Matrix& out) {
    return {.act = act.tensor(),
            .experts = experts,
            .begin = begin_view(),
            .slots = slots_view(),
            .slots_per_token = shape.slots_per_token,
            .y = out.view<float>()};
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
  std::vector<Matrix> matrices;
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
    for (const Dtype w : {Dtype::kF32, Dtype::kBf16, Dtype::kF16})
      for (const Dtype x : {Dtype::kF32, Dtype::kBf16})
        expect_rows_match<TypeParam>({n_tokens, 3, 7, 40, 21, w, x});
}

TYPED_TEST(Expert, EveryRowMatchesTheReferenceAtOddSizes) {
  for (const int64_t d_model : kOddSizes)
    for (const int64_t d_ff : {1, 9, 33, 65})
      expect_rows_match<TypeParam>({5, 2, 4, d_model, d_ff});
}

TYPED_TEST(Expert, OneHotExpertAndEmptyOnesAreRight) {
  expect_rows_match<TypeParam>({120, 1, 6, 30, 70, Dtype::kBf16, Dtype::kBf16, 4});
  expect_rows_match<TypeParam>({120, 2, 40, 30, 70, Dtype::kBf16, Dtype::kBf16, 0});
  expect_rows_match<TypeParam>({1, 1, 1, 1300, 66});
}

TYPED_TEST(Expert, ASlotsBitsDependOnNothingBesideIt) {
  for (const int64_t n_tokens : {3, 10, 110}) {
    Case c({n_tokens, 2, 3, 61, 45});
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
  Case c({1, 1, 1, 1, 4, Dtype::kF32, Dtype::kF32});
  c.x.set(0, 0, 1);
  for (int64_t r = 0; r < 4; ++r) {
    c.matrices[0].set(r, 0, std::vector<float>{-200, -80, 80, 200}[size_t(r)]);
    c.matrices[1].set(r, 0, 1);
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

}  // namespace
}  // namespace bascule
