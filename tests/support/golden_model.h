// Golden checkpoints under tests/golden, and one sequence through a model of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "format/checkpoint.h"
#include "format/safetensors.h"
#include "model/model.h"

namespace bascule {

// A checkpoint and what another implementation computed from it.
struct GoldenModel {
  std::unique_ptr<Checkpoint> checkpoint;
  ModelConfig config;
  ModelWeights weights;
  SafetensorsFile reference;

  // A fixture; eps as their READMEs say.
  explicit GoldenModel(const std::string& name) : GoldenModel(folder(name), folder(name), 1e-6f) {}

  GoldenModel(const std::filesystem::path& model, const std::filesystem::path& references,
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

  Sequence(const GoldenModel& model, KernelMode mode, Dtype activations, Layout layout = {},
           int threads = 1, ActivationScheme scheme = ActivationScheme::kPlain)
      : model_(model), layout_(layout), scheme_(scheme) {
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
                                .scheme = scheme_,
                                .kv_dtype = activations,
                                .max_batch_tokens = 512,
                                .max_logit_rows = 512},
                               rank->plan)
                        .value();
    rank->threads =
        std::make_unique<Threads>(Threads::Options{.count = n_threads,
                                                   .scratch_bytes = rank->plan.scratch_bytes(),
                                                   .shared_bytes = rank->plan.shared_bytes(),
                                                   .spin_us = 0});
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

  const GoldenModel& model_;
  Layout layout_;
  ActivationScheme scheme_;
  std::vector<std::unique_ptr<Comm>> world_comms_;
  std::vector<std::vector<std::unique_ptr<Comm>>> tp_comms_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<int32_t> page_table_;
  int32_t position_ = 0;
};

inline double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i])) return INFINITY;
    largest = std::max(largest, std::abs(double(a[i]) - double(b[i])));
  }
  return largest;
}

// rms(a - b) / rms(b)
inline double relative_change(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(double(a[i]) - double(b[i]), 2);
    size += std::pow(double(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

inline std::vector<int64_t> argmaxes(const std::vector<float>& logits, int64_t vocab) {
  std::vector<int64_t> result;
  for (size_t row = 0; row < logits.size(); row += vocab)
    result.push_back(std::max_element(logits.begin() + row, logits.begin() + row + vocab) -
                     (logits.begin() + row));
  return result;
}

inline double share_of_equal(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  double equal = 0;
  for (size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i];
  return equal / double(a.size());
}

}  // namespace bascule
