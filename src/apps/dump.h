// `run --dump`: hidden states and logits of every position, so that anyone can hold this engine
// against another implementation.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/request.h"
#include "model/config.h"

namespace bascule {

// Keeps in memory what it hears.
class DumpRecorder final : public RowRecorder {
 public:
  explicit DumpRecorder(const ModelConfig& config);
  static int64_t position_bytes(const ModelConfig& config);  // of one position's rows

  void on_hidden(int64_t layer, int64_t position, View<const float, 1> row) override;
  void on_logits(int64_t position, View<const float, 1> row) override;

  // hidden.0 … hidden.<n_layers> [n_positions, d_model] and logits [n_positions, vocab] as F32;
  // input_ids (the prompt) and generated (prompt and answer) as I32.
  Status write(const std::filesystem::path& path, std::span<const int32_t> prompt,
               std::span<const int32_t> answer) const;

 private:
  struct Rows {
    int64_t width;
    std::vector<float> values;
    void put(int64_t position, View<const float, 1> row);
  };
  std::vector<Rows> hidden_;
  Rows logits_;
};

}  // namespace bascule
