// The model against transformers' float32 outputs for whole checkpoints, row by row of the plan,
// and against itself in pieces.
#include "model/glm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <thread>

#include "format/checkpoint.h"
#include "format/safetensors.h"

namespace bascule {
namespace {

struct Loaded {
  std::unique_ptr<Checkpoint> checkpoint;
  ModelConfig config;
  ModelWeights weights;
  SafetensorsFile reference;

  // A fixture; eps as their READMEs say.
  explicit Loaded(const std::string& name) : Loaded(folder(name), folder(name), 1e-6f) {}

  Loaded(const std::filesystem::path& model, const std::filesystem::path& references,
         float latent_norm_eps)
      : reference(SafetensorsFile::open(references / "reference.safetensors").value()) {
    checkpoint = Checkpoint::open(model).value();
    config = parse_config(checkpoint->read_text("config.json").value(), model.string()).value();
    config.latent_norm_eps = latent_norm_eps;
    config.index_norm_eps = 1e-6f;
    weights = load_weights(*checkpoint, config).value();
  }
  static std::filesystem::path folder(const std::string& name) {
    return std::filesystem::path(BASCULE_TEST_DATA) / "golden" / name;
  }
  template <typename T>
  std::vector<T> expected(const std::string& tensor) const {
    const SafetensorsEntry* entry = reference.find(tensor);
    BASCULE_CHECK(entry);
    const T* data = static_cast<const T*>(reference.data(*entry));
    return {data, data + entry->size_bytes / int64_t(sizeof(T))};
  }
};

// One sequence on one or several ranks, each with memory of its own.
class Sequence {
 public:
  struct Outputs {
    std::vector<float> logits;               // [n_tokens, vocab]
    std::vector<std::vector<float>> hidden;  // [n_layers + 1][n_tokens, d_model]
  };

  Sequence(const Loaded& model, KernelMode mode, Dtype activations, Layout layout = {},
           int threads = 1)
      : model_(model), layout_(layout) {
    const int world = layout.world();
    world_comms_ = make_local_comms(world);
    for (int group = 0; group < world / layout.tp; ++group)
      tp_comms_.push_back(make_local_comms(layout.tp));
    for (int r = 0; r < world; ++r) ranks_.push_back(make_rank(r, mode, activations, threads));
    for (int32_t i = 0; i < 64; ++i) page_table_.push_back((i * 37 + 5) % 64);  // any order will do
  }

  // Runs `tokens` from where the last call ended, in one step.
  Outputs run(const std::vector<int32_t>& tokens) {
    std::vector<Outputs> outputs(ranks_.size());
    std::vector<std::thread> threads;
    for (size_t r = 0; r < ranks_.size(); ++r)
      threads.emplace_back([&, r] { outputs[r] = run_rank(*ranks_[r], tokens); });
    for (std::thread& t : threads) t.join();
    for (const Outputs& o : outputs) EXPECT_EQ(o.logits, outputs[0].logits);
    position_ += int32_t(tokens.size());
    return outputs[0];
  }

  const Plan& plan() const { return ranks_[0]->plan; }

 private:
  struct Rank {
    Plan plan;
    std::unique_ptr<PlannedModel> planned;
    std::vector<std::byte> activations, kv;
    std::unique_ptr<Threads> threads;
    std::unique_ptr<Model> model;
  };

  std::unique_ptr<Rank> make_rank(int r, KernelMode mode, Dtype activations, int n_threads) {
    auto rank = std::make_unique<Rank>(
        Rank{.plan = Plan({.mode = mode, .machine = Machine::detect(), .max_batch_tokens = 512})});
    const Placement placement(layout_, r);
    rank->planned = plan_model(model_.config, model_.weights, placement,
                               {.activations = activations,
                                .kv_dtype = activations,
                                .max_batch_tokens = 512,
                                .max_logit_rows = 512},
                               rank->plan)
                        .value();
    rank->threads = std::make_unique<Threads>(Threads::Options{
        .count = n_threads, .scratch_bytes = rank->plan.scratch_bytes(), .spin_us = 0});
    rank->activations.assign(rank->planned->activation_bytes() + 64, std::byte{0xff});
    rank->kv.assign(64 * rank->planned->kv_layout().page_bytes() + 64, std::byte{0xff});
    rank->model = rank->planned->bind(
        aligned(rank->activations), aligned(rank->kv),
        {.tp = layout_.tp > 1 ? tp_comms_[r / layout_.tp][r % layout_.tp].get() : nullptr,
         .world = world_comms_[r].get()});
    return rank;
  }

  static void* aligned(std::vector<std::byte>& bytes) {
    void* p = bytes.data();
    size_t space = bytes.size();
    return std::align(64, 1, p, space);
  }

  Outputs run_rank(Rank& rank, const std::vector<int32_t>& tokens) {
    const int64_t n = int64_t(tokens.size()), n_layers = model_.config.n_layers;
    std::vector<int32_t> position(n), sequence(n, 0), rows(n);
    for (int64_t t = 0; t < n; ++t) position[t] = position_ + int32_t(t), rows[t] = int32_t(t);
    Outputs outputs;
    outputs.hidden.resize(n_layers + 1);
    const Tap tap = [&](int64_t layer, View<const float, 2> h) {
      outputs.hidden[layer].assign(h.data, h.data + h.size());
    };
    const std::vector<int64_t> group_tokens(layout_.dp, n);
    const Batch batch{
        .tokens = View<const int32_t, 1>::packed(tokens.data(), {n}),
        .places = {.position = View<const int32_t, 1>::packed(position.data(), {n}),
                   .sequence = View<const int32_t, 1>::packed(sequence.data(), {n}),
                   .page_table = View<const int32_t, 2>::packed(page_table_.data(), {1, 64})},
        .logit_rows = View<const int32_t, 1>::packed(rows.data(), {n}),
        .group_tokens = group_tokens,
        .tap = &tap};
    Stream stream{.threads = rank.threads.get()};
    const View<const float, 2> logits = rank.model->forward(batch, stream);
    outputs.logits.assign(logits.data, logits.data + logits.size());
    return outputs;
  }

  const Loaded& model_;
  Layout layout_;
  std::vector<std::unique_ptr<Comm>> world_comms_;
  std::vector<std::vector<std::unique_ptr<Comm>>> tp_comms_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<int32_t> page_table_;
  int32_t position_ = 0;
};

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i])) return INFINITY;
    largest = std::max(largest, std::abs(double(a[i]) - double(b[i])));
  }
  return largest;
}

// rms(a - b) / rms(b)
double relative_change(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(double(a[i]) - double(b[i]), 2);
    size += std::pow(double(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

std::vector<int64_t> argmaxes(const std::vector<float>& logits, int64_t vocab) {
  std::vector<int64_t> result;
  for (size_t row = 0; row < logits.size(); row += vocab)
    result.push_back(std::max_element(logits.begin() + row, logits.begin() + row + vocab) -
                     (logits.begin() + row));
  return result;
}

double share_of_equal(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  double equal = 0;
  for (size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i];
  return equal / double(a.size());
}

// 48 greedy tokens after the first 40, decoded one at a time.
std::vector<int32_t> greedy(Sequence& sequence, const std::vector<int32_t>& ids, int64_t vocab) {
  std::vector<int32_t> all(ids.begin(), ids.begin() + 40);
  auto last = argmaxes(sequence.run(all).logits, vocab).back();
  while (true) {
    all.push_back(int32_t(last));
    if (all.size() == 88) return all;
    last = argmaxes(sequence.run({all.back()}).logits, vocab).back();
  }
}

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, ReferenceRowsMatchTransformersInFloat32) {
  const Loaded model(GetParam());
  const auto ids = model.expected<int32_t>("input_ids");
  const auto expected = model.expected<float>("logits");
  Sequence sequence(model, KernelMode::kReference, Dtype::kF32);
  const auto outputs = sequence.run(ids);
  for (int64_t layer = 0; layer <= model.config.n_layers; ++layer)
    ASSERT_LE(largest_difference(outputs.hidden[layer],
                                 model.expected<float>("hidden." + std::to_string(layer))),
              3e-4)
        << "entering layer " << layer;
  EXPECT_LE(largest_difference(outputs.logits, expected), 3e-4);
  const int64_t vocab = model.config.vocab_size;
  EXPECT_EQ(argmaxes(outputs.logits, vocab), argmaxes(expected, vocab));
  RecordProperty("largest logit difference",
                 std::to_string(largest_difference(outputs.logits, expected)));
}

TEST_P(Golden, FastRowsMatchTransformersInFloat32) {
  const Loaded model(GetParam());
  const auto expected = model.expected<float>("logits");
  Sequence sequence(model, KernelMode::kFast, Dtype::kF32, {}, 2);
  const auto outputs = sequence.run(model.expected<int32_t>("input_ids"));
  EXPECT_LE(largest_difference(outputs.logits, expected), 3e-4);
  const int64_t vocab = model.config.vocab_size;
  EXPECT_EQ(argmaxes(outputs.logits, vocab), argmaxes(expected, vocab));
}

TEST_P(Golden, GreedyContinuationIsTransformers) {
  const Loaded model(GetParam());
  for (const KernelMode mode : {KernelMode::kReference, KernelMode::kFast}) {
    Sequence sequence(model, mode, Dtype::kF32);
    EXPECT_EQ(greedy(sequence, model.expected<int32_t>("input_ids"), model.config.vocab_size),
              model.expected<int32_t>("generated"));
  }
}

TEST_P(Golden, PiecesGiveTheBitsOfTheWhole) {
  const Loaded model(GetParam());
  auto ids = model.expected<int32_t>("input_ids");
  for (const KernelMode mode : {KernelMode::kFast, KernelMode::kReference}) {
    if (mode == KernelMode::kReference) ids.resize(model.config.index_topk + 40);  // it is slow
    Sequence whole(model, mode, Dtype::kF32, {}, 2);
    const std::vector<float> expected = whole.run(ids).logits;
    for (const size_t piece : {1, 7, 33}) {
      Sequence pieces(model, mode, Dtype::kF32, {}, 1);
      std::vector<float> logits;
      for (size_t i = 0; i < ids.size(); i += piece) {
        const auto outputs =
            pieces.run({ids.begin() + i, ids.begin() + std::min(ids.size(), i + piece)});
        logits.insert(logits.end(), outputs.logits.begin(), outputs.logits.end());
      }
      EXPECT_EQ(logits, expected) << "in pieces of " << piece;
    }
  }
}

TEST_P(Golden, AnyNumberOfRanksGivesTheBitsOfOne) {
  const Loaded model(GetParam());
  auto ids = model.expected<int32_t>("input_ids");
  ids.resize(model.config.index_topk + 9);  // past the border of sparse attention
  for (const KernelMode mode : {KernelMode::kReference, KernelMode::kFast}) {
    Sequence one(model, mode, Dtype::kF32);
    const std::vector<float> expected = one.run(ids).logits;
    for (const Layout layout :
         {Layout{.tp = 2}, Layout{.tp = 3}, Layout{.tp = 4}, Layout{.ep = 2}, Layout{.ep = 4},
          Layout{.dp = 2}, Layout{.tp = 2, .dp = 2}, Layout{.ep = 2, .dp = 2},
          Layout{.tp = 2, .ep = 4, .dp = 2}, Layout{.tp = 2, .ep = 2}}) {
      Sequence ranks(model, mode, Dtype::kF32, layout);
      EXPECT_EQ(ranks.run(ids).logits, expected)
          << "tp " << layout.tp << " ep " << layout.ep << " dp " << layout.dp;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, Golden,
                         testing::Values("glm-moe-dsa-tiny", "glm-moe-dsa-calm"),
                         [](const auto& info) { return std::string(info.param).substr(12); });

// The natural error of bf16 activations on this checkpoint, as transformers shows it, is 0.0150.
TEST(Bf16Activations, StayWithinTwiceTheirNaturalError) {
  const Loaded model("glm-moe-dsa-calm");
  const auto ids = model.expected<int32_t>("input_ids");
  const auto expected = model.expected<float>("logits");
  const int64_t vocab = model.config.vocab_size;
  Sequence sequence(model, KernelMode::kFast, Dtype::kBf16, {}, 2);
  const std::vector<float> logits = sequence.run(ids).logits;
  EXPECT_LE(relative_change(logits, expected), 0.030);
  EXPECT_GE(share_of_equal(argmaxes(logits, vocab), argmaxes(expected, vocab)), 0.97);
  Sequence fresh(model, KernelMode::kFast, Dtype::kBf16);
  EXPECT_EQ(greedy(fresh, ids, vocab), model.expected<int32_t>("generated"));
  RecordProperty("relative change", std::to_string(relative_change(logits, expected)));
}

// The recipe's PyTorch model, written from the specification: a second opinion. Past index_topk
// (256).
TEST(DemoModel, AgreesWithItsRecipe) {
  const std::filesystem::path tests(BASCULE_TEST_DATA);
  const Loaded model(tests.parent_path() / "models/demo", tests / "golden/demo", 1e-5f);
  auto ids = model.expected<int32_t>("input_ids");
  const auto argmax = model.expected<int32_t>("argmax");
  const auto rows = model.expected<int32_t>("rows");
  const auto expected = model.expected<float>("logits");
  const int64_t vocab = model.config.vocab_size;

  Sequence sequence(model, KernelMode::kFast, Dtype::kF32, {}, 2);
  std::vector<float> logits;
  for (size_t i = 0; i < ids.size(); i += 352) {  // a step takes 512 tokens at most
    const auto piece = sequence.run({ids.begin() + i, ids.begin() + i + 352}).logits;
    logits.insert(logits.end(), piece.begin(), piece.end());
  }
  EXPECT_EQ(argmaxes(logits, vocab), (std::vector<int64_t>{argmax.begin(), argmax.end()}));
  double largest = 0;
  for (size_t r = 0; r < rows.size(); ++r)
    for (int64_t c = 0; c < vocab; ++c)
      largest = std::max(
          largest, std::abs(double(logits[rows[r] * vocab + c]) - double(expected[r * vocab + c])));
  EXPECT_LE(largest, 1e-3);
  RecordProperty("largest logit difference", std::to_string(largest));
}

}  // namespace
}  // namespace bascule
