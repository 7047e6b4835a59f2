// What config.json's quantization_config says of each weight, to be compared with what is stored.
// The stored types decide (stored_format.h); this is for telling a person where the two disagree,
// since other programs read the same list.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/weight_format.h"

namespace bascule {

class DeclaredFormats {
 public:
  // Of the whole config.json; one without a quantization_config declares nothing.
  static Result<DeclaredFormats> parse(std::string_view config_json, int64_t n_layers);

  // The format of the linear layer "model.layers.3.self_attn.o_proj"; none where nothing is said
  // that this program understands. Layer n_layers, the draft layer, also goes by the names that
  // serving programs give its modules: model.decoder.*, model.eh_proj.
  std::optional<WeightFormat> of(const std::string& module) const;

  // How the weights were made: "quark 0.13", "fp8"; empty where nothing is said.
  const std::string& method() const { return method_; }

 private:
  struct Rule {
    std::string pattern;
    std::optional<WeightFormat> format;
  };
  bool matches(const std::string& pattern, const std::string& module) const;

  std::string method_;
  std::string draft_prefix_;  // "model.layers.78."
  std::vector<std::string> excluded_;
  std::vector<Rule> rules_;  // the first that matches
  std::optional<WeightFormat> otherwise_;
};

}  // namespace bascule
