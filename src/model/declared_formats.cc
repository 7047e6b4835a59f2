#include "model/declared_formats.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"

namespace bascule {
namespace {

// A pattern of text and `*`, which is any text; linear in time for each star.
bool glob_matches(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (;;) {
    const size_t next = pattern.find('*');
    const std::string_view part = pattern.substr(0, next);
    if (next == pattern.npos) return text.ends_with(part);
    const size_t at = text.find(part);
    if (at == text.npos) return false;
    text.remove_prefix(at + part.size());
    pattern.remove_prefix(next + 1);
  }
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Quark's description of a weight's type.
std::optional<WeightFormat> quark_format(const Json& scheme) {
  if (!scheme.is_object() || !scheme.contains("weight")) return {};
  const Json& weight = scheme["weight"];
  const std::string dtype = text_of(weight, "dtype"), grouping = text_of(weight, "qscheme");
  if (dtype == "fp4" && grouping == "per_group") return WeightFormat::kMxfp4;
  if (dtype == "fp8_e4m3" && grouping == "per_channel") return WeightFormat::kFp8Rows;
  return {};
}

std::vector<std::string> texts_of(const Json& object, const char* key) {
  std::vector<std::string> texts;
  if (!object.contains(key) || !object[key].is_array()) return texts;
  for (const Json& entry : object[key])
    if (entry.is_string()) texts.push_back(entry.get<std::string>());
  return texts;
}

}  // namespace

Result<DeclaredFormats> DeclaredFormats::parse(std::string_view config_json, int64_t n_layers) {
  BASCULE_TRY_ASSIGN(const Json config, parse_json(config_json, "config.json"));
  DeclaredFormats declared;
  declared.draft_prefix_ = fmt::format("model.layers.{}.", n_layers);
  if (!config.is_object() || !config.contains("quantization_config")) return declared;
  const Json& q = config["quantization_config"];
  if (!q.is_object()) return declared;
  declared.method_ = text_of(q, "quant_method");
  if (declared.method_ == "fp8") {
    declared.excluded_ = texts_of(q, "modules_to_not_convert");
    declared.otherwise_ = WeightFormat::kFp8Blocks;
  } else if (declared.method_ == "quark") {
    declared.excluded_ = texts_of(q, "exclude");
    if (q.contains("global_quant_config"))
      declared.otherwise_ = quark_format(q["global_quant_config"]);
    if (q.contains("layer_quant_config") && q["layer_quant_config"].is_object())
      for (const auto& [pattern, scheme] : q["layer_quant_config"].items())
        declared.rules_.push_back({pattern, quark_format(scheme)});
    if (const std::string version = text_of(q, "version"); !version.empty())
      declared.method_ += " " + version;
  }
  return declared;
}

bool DeclaredFormats::matches(const std::string& pattern, const std::string& module) const {
  if (glob_matches(pattern, module)) return true;
  if (!module.starts_with(draft_prefix_)) return false;
  const std::string rest = module.substr(draft_prefix_.size());
  return glob_matches(pattern, "model.decoder." + rest) || glob_matches(pattern, "model." + rest);
}

std::optional<WeightFormat> DeclaredFormats::of(const std::string& module) const {
  if (method_.empty() || !otherwise_) return {};
  const auto is_match = [&](const std::string& pattern) { return matches(pattern, module); };
  if (std::ranges::any_of(excluded_, is_match)) return WeightFormat::kBf16;
  for (const Rule& rule : rules_)
    if (is_match(rule.pattern)) return rule.format;
  return otherwise_;
}

}  // namespace bascule
