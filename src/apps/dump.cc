#include "apps/dump.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/safetensors.h"

namespace bascule {

DumpRecorder::DumpRecorder(const ModelConfig& config)
    : hidden_(size_t(config.n_layers) + 1, Rows{config.d_model, {}}),
      logits_{config.vocab_size, {}} {}

int64_t DumpRecorder::position_bytes(const ModelConfig& config) {
  return int64_t(sizeof(float)) * (config.d_model * (config.n_layers + 1) + config.vocab_size);
}

void DumpRecorder::Rows::put(int64_t position, View<const float, 1> row) {
  const size_t end = size_t((position + 1) * width);
  if (values.size() < end) values.resize(end);
  for (int64_t c = 0; c < width; ++c) values[size_t(position * width + c)] = row(c);
}

void DumpRecorder::on_hidden(int64_t layer, int64_t position, View<const float, 1> row) {
  hidden_[size_t(layer)].put(position, row);
}

void DumpRecorder::on_logits(int64_t position, View<const float, 1> row) {
  logits_.put(position, row);
}

Status DumpRecorder::write(const std::filesystem::path& path, std::span<const int32_t> prompt,
                           std::span<const int32_t> answer) const {
  std::vector<int32_t> generated(prompt.begin(), prompt.end());
  generated.insert(generated.end(), answer.begin(), answer.end());
  std::vector<TensorToWrite> tensors;
  const auto add_rows = [&](std::string name, const Rows& rows) {
    tensors.push_back({std::move(name),
                       Dtype::kF32,
                       {int64_t(rows.values.size()) / rows.width, rows.width},
                       rows.values.data()});
  };
  for (size_t layer = 0; layer < hidden_.size(); ++layer)
    add_rows(fmt::format("hidden.{}", layer), hidden_[layer]);
  add_rows("logits", logits_);
  tensors.push_back({"input_ids", Dtype::kI32, {int64_t(prompt.size())}, prompt.data()});
  tensors.push_back({"generated", Dtype::kI32, {int64_t(generated.size())}, generated.data()});
  return write_safetensors(path, tensors).with_context("--dump");
}

}  // namespace bascule
