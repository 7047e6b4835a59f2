#include "model/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "base/quote.h"
#include "model/declared_formats.h"
#include "model/stored_format.h"

namespace bascule {
namespace {

// A row of the table: a tensor's name and shape, and where its view goes.
struct Slot {
  ExpectedTensor expected;
  Weight* matrix = nullptr;  // one of the three
  Tensor<2>* table = nullptr;
  Vector* vector = nullptr;

  void fill(const StoredTensor& stored, const StoredFormat& format, ModelWeights& weights) const {
    const auto& shape = expected.shape;
    if (vector != nullptr) {
      *vector = Vector::packed(stored.data, stored.dtype, {shape[0]});
    } else if (table != nullptr) {
      *table = Tensor<2>::packed(stored.data, stored.dtype, {shape[0], shape[1]});
    } else {
      matrix->w = weight_view(stored, format, shape[0], shape[1], weights.widened_scales);
    }
  }
};

// Lists the tensors of a model in the order of its forward pass. The one place that knows names.
class Table {
 public:
  Table(const ModelConfig& config, ModelWeights& into) : c_(config) {
    model(into);
    const size_t n_target_slots = slots_.size();
    if (c_.n_draft_layers > 0) draft(into.draft);
    n_target_slots_ = n_target_slots;
  }

  const std::vector<Slot>& slots() const { return slots_; }
  bool is_draft(size_t slot) const { return slot >= n_target_slots_; }

 private:
  void model(ModelWeights& m) {
    add("embedding", "model.embed_tokens.weight", {c_.vocab_size, c_.d_model}, m.embed);
    m.layers.resize(static_cast<size_t>(c_.n_layers));
    for (int64_t i = 0; i < c_.n_layers; ++i)
      layer(fmt::format("model.layers.{}.", i), c_.owns_indexer[i], c_.is_sparse[i], m.layers[i]);
    add("norms", "model.norm.weight", {c_.d_model}, m.norm);
    if (!c_.tied_head) add("head", "lm_head.weight", {c_.vocab_size, c_.d_model}, m.head);
  }

  void draft(DraftWeights& d) {
    part_ = "draft";
    const std::string prefix = fmt::format("model.layers.{}.", c_.n_layers);
    add("", prefix + "enorm.weight", {c_.d_model}, d.embed_norm);
    add("", prefix + "hnorm.weight", {c_.d_model}, d.hidden_norm);
    add("", prefix + "eh_proj.weight", {c_.d_model, 2 * c_.d_model}, d.eh_proj);
    layer(prefix, /*owns_indexer=*/true, /*is_sparse=*/true, d.layer);
    add("", prefix + "shared_head.norm.weight", {c_.d_model}, d.head_norm);
  }

  void layer(const std::string& prefix, bool owns_indexer, bool is_sparse, LayerWeights& l) {
    l.owns_indexer = owns_indexer;
    l.is_sparse = is_sparse;
    add("norms", prefix + "input_layernorm.weight", {c_.d_model}, l.input_norm);
    attention(prefix + "self_attn.", l.attention);
    if (owns_indexer) indexer(prefix + "self_attn.indexer.", l.indexer);
    add("norms", prefix + "post_attention_layernorm.weight", {c_.d_model}, l.post_attention_norm);
    if (is_sparse) {
      experts(prefix + "mlp.", l);
    } else {
      mlp("dense", prefix + "mlp.", c_.d_dense, l.dense);
    }
  }

  void attention(const std::string& p, AttentionWeights& a) {
    add("attention", p + "q_a_proj.weight", {c_.q_rank, c_.d_model}, a.q_a);
    add("norms", p + "q_a_layernorm.weight", {c_.q_rank}, a.q_a_norm);
    add("attention", p + "q_b_proj.weight", {c_.n_heads * c_.d_qk(), c_.q_rank}, a.q_b);
    add("attention", p + "kv_a_proj_with_mqa.weight", {c_.d_latent(), c_.d_model}, a.kv_a);
    add("norms", p + "kv_a_layernorm.weight", {c_.kv_rank}, a.kv_a_norm);
    add("attention", p + "kv_b_proj.weight", {c_.n_heads * (c_.d_nope + c_.d_v), c_.kv_rank},
        a.kv_b);
    add("attention", p + "o_proj.weight", {c_.d_model, c_.n_heads * c_.d_v}, a.o);
  }

  void indexer(const std::string& p, IndexerWeights& x) {
    add("indexer", p + "wq_b.weight", {c_.n_index_heads * c_.d_index, c_.q_rank}, x.wq_b);
    add("indexer", p + "wk.weight", {c_.d_index, c_.d_model}, x.wk);
    add("indexer", p + "k_norm.weight", {c_.d_index}, x.k_norm_weight);
    add("indexer", p + "k_norm.bias", {c_.d_index}, x.k_norm_bias);
    add("indexer", p + "weights_proj.weight", {c_.n_index_heads, c_.d_model}, x.weights_proj);
  }

  void experts(const std::string& p, LayerWeights& l) {
    add("router", p + "gate.weight", {c_.n_experts, c_.d_model}, l.router);
    add("router", p + "gate.e_score_correction_bias", {c_.n_experts}, l.router_bias);
    slots_.back().expected.keeps_f32 = true;
    l.experts.resize(static_cast<size_t>(c_.n_experts));
    for (int64_t e = 0; e < c_.n_experts; ++e)
      mlp("experts", fmt::format("{}experts.{}.", p, e), c_.d_expert, l.experts[e]);
    if (c_.n_shared_experts > 0)
      mlp("shared experts", p + "shared_experts.", c_.n_shared_experts * c_.d_expert, l.shared);
  }

  void mlp(std::string_view part, const std::string& p, int64_t d_ff, MlpWeights& m) {
    add(part, p + "gate_proj.weight", {d_ff, c_.d_model}, m.gate);
    add(part, p + "up_proj.weight", {d_ff, c_.d_model}, m.up);
    add(part, p + "down_proj.weight", {c_.d_model, d_ff}, m.down);
  }

  Slot& add(std::string_view part, std::string name, std::vector<int64_t> shape) {
    slots_.push_back({{std::move(name), std::move(shape), part_.empty() ? part : part_}});
    return slots_.back();
  }
  void add(std::string_view part, std::string name, std::vector<int64_t> shape, Weight& to) {
    add(part, std::move(name), std::move(shape)).matrix = &to;
  }
  void add(std::string_view part, std::string name, std::vector<int64_t> shape, Tensor<2>& to) {
    add(part, std::move(name), std::move(shape)).table = &to;
  }
  void add(std::string_view part, std::string name, std::vector<int64_t> shape, Vector& to) {
    add(part, std::move(name), std::move(shape)).vector = &to;
  }

  const ModelConfig& c_;
  std::vector<Slot> slots_;
  size_t n_target_slots_ = 0;
  std::string_view part_;  // of all that is added, where it is not empty
};

// Fates, and how soon a person wants to hear of each: a file in a format that is not read has
// wrong types, unknown scales and perhaps missing tensors, and the type explains the others.
constexpr const char* kLoaded = "loaded";
constexpr const char* kSkipped = "skipped";
constexpr std::array<const char*, 4> kFaults = {"wrong type", "wrong shape", "unknown", "missing"};

// A layer's number and the rest of the name: "model.layers.7.mlp.gate.weight".
struct LayerName {
  int64_t layer = 0;
  std::string_view rest;

  static std::optional<LayerName> parse(std::string_view name) {
    constexpr std::string_view kPrefix = "model.layers.";
    if (!name.starts_with(kPrefix)) return std::nullopt;
    name.remove_prefix(kPrefix.size());
    LayerName parsed;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), parsed.layer);
    const auto n_digits = static_cast<size_t>(end - name.data());
    if (error != std::errc() || n_digits >= name.size() || name[n_digits] != '.')
      return std::nullopt;
    parsed.rest = name.substr(n_digits + 1);
    return parsed;
  }
};

class Accountant {
 public:
  Accountant(const Checkpoint& checkpoint, const ModelConfig& config, ModelWeights& into)
      : checkpoint_(checkpoint), c_(config), table_(config, into) {
    for (size_t i = 0; i < table_.slots().size(); ++i)
      slot_by_name_.emplace(table_.slots()[i].expected.name, i);
    has_draft_ = c_.n_draft_layers > 0 && any_draft_tensor();
  }

  WeightsReport report() {
    report_.notices = checkpoint_.notices();
    if (c_.n_draft_layers > 0 && !has_draft_)
      notice(
          fmt::format("config.json names a draft layer, and the checkpoint has no tensor of "
                      "layer {}: drafting is off",
                      c_.n_layers));
    for (const auto& [name, tensor] : checkpoint_.tensors()) account_for(tensor);
    for (const auto& [name, slot] : slot_by_name_)
      if (is_wanted(slot) && checkpoint_.find(name) == nullptr) missing(slot);
    std::sort(report_.tensors.begin(), report_.tensors.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    summarise_skips();
    compare_with_config();
    return std::move(report_);
  }

  // Views of all that the table has; only after a report without faults.
  Status fill(WeightUse use, ModelWeights& weights) const {
    for (size_t i = 0; i < table_.slots().size(); ++i) {
      if (!is_wanted(i)) continue;
      const Slot& slot = table_.slots()[i];
      const StoredTensor& stored = *checkpoint_.find(slot.expected.name);
      const StoredFormat format = format_of(stored, slot);
      if (use == WeightUse::kValues && format.scale != nullptr)
        BASCULE_TRY(check_scales(*format.scale));
      slot.fill(stored, format, weights);
    }
    return {};
  }
  bool has_draft() const { return has_draft_; }

 private:
  // What a slot may hold: a matrix any format, the others plain floats.
  StoredFormat format_of(const StoredTensor& stored, const Slot& slot) const {
    const ExpectedTensor& e = slot.expected;
    if (slot.matrix != nullptr) return stored_format(checkpoint_, stored, e.shape);
    if (e.keeps_f32 && stored.dtype != Dtype::kF32)
      return {.fault = "wrong type",
              .reason =
                  "F32 expected: 16 bits merge neighbouring biases and change which experts "
                  "are chosen; take this tensor from the original checkpoint"};
    if (!is_plain_float(stored.dtype))
      return {.fault = "wrong type",
              .reason = fmt::format("BF16, F16 or F32 expected: {} is not read here by this "
                                    "version",
                                    name(stored.dtype))};
    return stored_format(checkpoint_, stored, e.shape);
  }

  // The slot whose weight a tensor is the scale of, by its name.
  const Slot* scaled_by(const StoredTensor& tensor) const {
    const auto found = slot_by_name_.find(scaled_weight(tensor.name));
    return found == slot_by_name_.end() ? nullptr : &table_.slots()[found->second];
  }

  bool is_wanted(size_t slot) const { return has_draft_ || !table_.is_draft(slot); }

  bool any_draft_tensor() const {
    for (const auto& [name, slot] : slot_by_name_)
      if (table_.is_draft(slot) && checkpoint_.find(name) != nullptr) return true;
    return false;
  }

  void account_for(const StoredTensor& tensor) {
    const auto found = slot_by_name_.find(tensor.name);
    if (found != slot_by_name_.end()) return expected(tensor, table_.slots()[found->second]);
    if (const Slot* slot = scaled_by(tensor)) return scale(tensor, *slot);
    // A weight that is not read has no use for its scale.
    const StoredTensor* weight = checkpoint_.find(scaled_weight(tensor.name));
    if (const auto reason = reason_to_skip(weight != nullptr ? *weight : tensor))
      return skipped(tensor, *reason);
    add(tensor, "unknown", why_unknown(tensor.name), "");
    ++report_.n_errors;
  }

  void expected(const StoredTensor& tensor, const Slot& slot) {
    const StoredFormat format = format_of(tensor, slot);
    TensorReport& row = add(tensor, format.fault.empty() ? kLoaded : format.fault.c_str(),
                            format.reason, slot.expected.part);
    ++report_.n_expected;
    if (!format.fault.empty()) {
      ++report_.n_errors;
      return;
    }
    row.format = name(format.format);
    row.n_parameters = slot.expected.n_elements();
    ++report_.n_loaded;
  }

  // A tensor named as the scale of a weight that the table has: read with it, or not needed.
  void scale(const StoredTensor& tensor, const Slot& slot) {
    const StoredTensor* weight = checkpoint_.find(slot.expected.name);
    if (weight == nullptr) {
      add(tensor, "unknown", fmt::format("its weight {} is not there", slot.expected.name), "");
      ++report_.n_errors;
      return;
    }
    const StoredFormat format = format_of(*weight, slot);
    if (format.fault.empty() && format.scale == nullptr)
      return skipped(tensor, fmt::format("its weight is stored in {}, which has no scales",
                                         name(format.format)));
    if (format.scale != &tensor) {
      add(tensor, "unknown", "a scale that does not fit its weight", "");
      ++report_.n_errors;
      return;
    }
    add(tensor, kLoaded, "scale of its weight", slot.expected.part).format = name(format.format);
    ++report_.n_expected;
    ++report_.n_loaded;
  }

  // Tensors that have no place here and that a good checkpoint may hold.
  std::optional<std::string> reason_to_skip(const StoredTensor& tensor) const {
    if (tensor.name.ends_with(".rotary_emb.inv_freq"))
      return "rope frequencies are computed from config.json";
    if (c_.tied_head && tensor.name == "lm_head.weight")
      return "tie_word_embeddings: the embedding is the head";
    const auto in_layer = LayerName::parse(tensor.name);
    if (!in_layer) return std::nullopt;
    if (in_layer->layer == c_.n_layers) return reason_to_skip_draft(tensor, in_layer->rest);
    if (in_layer->layer < 0 || in_layer->layer > c_.n_layers) return std::nullopt;
    constexpr std::array kIndexerTensors = {"wq_b.weight", "wk.weight", "k_norm.weight",
                                            "k_norm.bias", "weights_proj.weight"};
    for (const std::string_view part : kIndexerTensors)
      if (in_layer->rest == fmt::format("self_attn.indexer.{}", part) &&
          !c_.owns_indexer[static_cast<size_t>(in_layer->layer)])
        return "this layer shares the indexer of an earlier one";
    return std::nullopt;
  }

  std::optional<std::string> reason_to_skip_draft(const StoredTensor& tensor,
                                                  std::string_view rest) const {
    if (c_.n_draft_layers == 0) return "draft layer: config.json has no num_nextn_predict_layers";
    const bool fits = tensor.shape == std::vector<int64_t>{c_.vocab_size, c_.d_model};
    if (fits && rest == "embed_tokens.weight") return "the draft layer uses the model's embedding";
    if (fits && rest == "shared_head.head.weight") return "the draft layer uses the model's head";
    return std::nullopt;
  }

  std::string why_unknown(const std::string& tensor) const {
    const std::string_view name = tensor;
    if (name.ends_with(".weight_scale_inv") || name.ends_with(".weight_scale") ||
        name.ends_with(".weight_scale_2") || name.ends_with(".input_scale"))
      return "a scale of a weight or a format that this version does not read";
    if (name.find(".mlp.experts.gate_up_proj") != name.npos ||
        name.find(".mlp.experts.gate_proj") != name.npos ||
        name.find(".mlp.experts.up_proj") != name.npos ||
        name.find(".mlp.experts.down_proj") != name.npos)
      return "experts stacked in one tensor; one tensor an expert is read "
             "(mlp.experts.0.gate_proj.weight)";
    if (const auto in_layer = LayerName::parse(name);
        in_layer && in_layer->layer >= c_.n_layers + c_.n_draft_layers)
      return fmt::format("config.json has {} layers", c_.n_layers);
    return "this model has no tensor of this name";
  }

  void skipped(const StoredTensor& tensor, const std::string& reason) {
    add(tensor, kSkipped, reason, "");
    ++report_.n_skipped;
    if (tensor.name == "lm_head.weight") compare_tied_head(tensor);
  }

  // Other programs go by the list in config.json; here the tensors are trusted.
  void compare_with_config() {
    const Result<std::string> config = checkpoint_.read_text("config.json");
    if (!config.ok()) return;
    const auto declared = DeclaredFormats::parse(*config, c_.n_layers);
    if (!declared.ok()) return;
    int64_t n_differing = 0;
    std::string first;
    for (const Slot& slot : table_.slots()) {
      const StoredTensor* stored = checkpoint_.find(slot.expected.name);
      if (slot.matrix == nullptr || stored == nullptr) continue;
      const std::string module =
          slot.expected.name.substr(0, slot.expected.name.size() - strlen(".weight"));
      const auto said = declared->of(module);
      const StoredFormat is = format_of(*stored, slot);
      if (!said || !is.fault.empty() || *said == is.format) continue;
      if (is_plain(*said) && is_plain(is.format)) continue;
      if (n_differing++ == 0)
        first = fmt::format("{} is {}, config.json has it as {}", in_quotes(slot.expected.name),
                            name(is.format), name(*said));
    }
    if (n_differing > 0)
      notice(
          fmt::format("{} of config.json's quantization_config ({}) {} not as stored ({}): the "
                      "stored types are trusted",
                      n_differing == 1 ? "1 weight" : fmt::format("{} weights", n_differing),
                      declared->method(), n_differing == 1 ? "is" : "are", first));
  }

  // Somebody may have trained the head after the flag was written.
  void compare_tied_head(const StoredTensor& head) {
    const StoredTensor* embed = checkpoint_.find("model.embed_tokens.weight");
    const bool same = embed != nullptr && embed->dtype == head.dtype &&
                      embed->shape == head.shape &&
                      memcmp(embed->data, head.data, static_cast<size_t>(head.size_bytes)) == 0;
    if (!same)
      notice(
          "lm_head.weight differs from the embedding, and tie_word_embeddings is true: the "
          "embedding is used as the head. If the stored head is meant, set it to false");
  }

  void missing(size_t slot) {
    const ExpectedTensor& e = table_.slots()[slot].expected;
    report_.tensors.push_back({.name = e.name,
                               .shape = e.shape,
                               .fate = "missing",
                               .reason = "no file of the checkpoint holds it",
                               .part = std::string(e.part)});
    ++report_.n_expected;
    ++report_.n_errors;
  }

  TensorReport& add(const StoredTensor& t, const char* fate, std::string reason,
                    std::string_view part) {
    report_.tensors.push_back({.name = t.name,
                               .dtype = std::string(name(t.dtype)),
                               .shape = t.shape,
                               .size_bytes = t.size_bytes,
                               .file = checkpoint_.files()[t.file].filename().string(),
                               .fate = fate,
                               .reason = std::move(reason),
                               .part = std::string(part)});
    return report_.tensors.back();
  }

  void notice(std::string text) { report_.notices.push_back(std::move(text)); }

  // One line a reason, not one a tensor.
  void summarise_skips() {
    std::map<std::string, std::pair<int64_t, std::string>> reasons;  // count, first name
    for (const TensorReport& t : report_.tensors)
      if (t.fate == kSkipped) {
        auto& [count, first] = reasons[t.reason];
        if (count++ == 0) first = t.name;
      }
    for (const auto& [reason, skipped] : reasons)
      notice(fmt::format("{} skipped ({}{}): {}",
                         skipped.first == 1 ? "1 tensor" : fmt::format("{} tensors", skipped.first),
                         in_quotes(skipped.second), skipped.first == 1 ? "" : ", ...", reason));
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& c_;
  Table table_;
  std::map<std::string, size_t, std::less<>> slot_by_name_;
  bool has_draft_ = false;
  WeightsReport report_;
};

std::string fault_text(const TensorReport& t) {
  if (t.fate == "missing")
    return fmt::format("tensor {} [{}] is missing", in_quotes(t.name), fmt::join(t.shape, ", "));
  return fmt::format("tensor {}, {} [{}] in {}: {}: {}", in_quotes(t.name), t.dtype,
                     fmt::join(t.shape, ", "), t.file, t.fate, t.reason);
}

// The fault that explains most, and how many of each kind there are.
Status first_fault(const WeightsReport& report) {
  std::string first;
  std::vector<std::string> counts;
  for (const std::string_view kind : kFaults) {
    int64_t count = 0;
    for (const TensorReport& t : report.tensors) {
      if (t.fate != kind) continue;
      if (first.empty()) first = fault_text(t);
      ++count;
    }
    if (count > 0) counts.push_back(fmt::format("{} {}", count, kind));
  }
  if (report.n_errors == 1) return invalid_argument(first);
  return invalid_argument(fmt::format("{} ({} of {} tensors found; faults: {})", first,
                                      report.n_loaded, report.n_expected, fmt::join(counts, ", ")));
}

}  // namespace

int64_t ExpectedTensor::n_elements() const {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config) {
  ModelWeights unused;
  std::vector<ExpectedTensor> tensors;
  const Table table(config, unused);
  for (const Slot& slot : table.slots()) tensors.push_back(slot.expected);
  return tensors;
}

std::vector<NamedWeight> named_weights(const ModelConfig& config, ModelWeights& weights) {
  std::vector<NamedWeight> named;
  const Table table(config, weights);
  for (const Slot& slot : table.slots())
    if (slot.matrix != nullptr) named.push_back({slot.expected.name, slot.matrix});
  return named;
}

WeightsReport account(const Checkpoint& checkpoint, const ModelConfig& config) {
  ModelWeights unused;
  return Accountant(checkpoint, config, unused).report();
}

Result<ModelWeights> load_weights(const Checkpoint& checkpoint, const ModelConfig& config,
                                  WeightUse use) {
  ModelWeights weights;
  Accountant accountant(checkpoint, config, weights);
  WeightsReport report = accountant.report();
  if (report.n_errors > 0) return first_fault(report).with_context(checkpoint.folder().string());
  BASCULE_TRY(accountant.fill(use, weights));
  weights.has_draft = accountant.has_draft();
  if (!weights.has_draft) weights.draft = {};
  if (config.tied_head) weights.head.w = weights.embed;
  weights.notices = std::move(report.notices);
  for (const TensorReport& t : report.tensors)
    if (t.fate == kLoaded) weights.size_bytes += t.size_bytes;
  return weights;
}

namespace {

// Whether a bit pattern is NaN or infinite: all exponent bits set.
bool is_non_finite(uint16_t bits, Dtype dtype) {
  const uint16_t exponent = dtype == Dtype::kF16 ? 0x7c00 : 0x7f80;
  return (bits & exponent) == exponent;
}
bool is_non_finite(uint32_t bits, Dtype) { return (bits & 0x7f800000) == 0x7f800000; }

// The first such element, or n. Blocks are tested whole, without a branch, so that the loop
// runs at memory speed.
template <typename Bits>
int64_t first_non_finite(const Bits* data, int64_t n, Dtype dtype) {
  constexpr int64_t kBlock = 4096;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, n);
    unsigned found = 0;
    for (int64_t i = begin; i < end; ++i) found |= is_non_finite(data[i], dtype);
    if (found == 0) continue;
    for (int64_t i = begin;; ++i)
      if (is_non_finite(data[i], dtype)) return i;
  }
  return n;
}

// An FP8 code of 0x7f or 0xff.
int64_t first_nan_code(const uint8_t* data, int64_t n) {
  return std::find_if(data, data + n, [](uint8_t code) { return (code & 0x7f) == 0x7f; }) - data;
}

int64_t first_non_finite(const StoredTensor& t, bool is_scale, int64_t begin, int64_t end) {
  const auto* bytes = static_cast<const uint8_t*>(t.data);
  if (size_bytes(t.dtype) == 1 && is_scale)
    return begin + (std::find(bytes + begin, bytes + end, uint8_t{255}) - (bytes + begin));
  if (t.dtype == Dtype::kU8) return end;  // every E2M1 code is a number
  if (t.dtype == Dtype::kF8E4m3)
    return begin + first_nan_code(static_cast<const uint8_t*>(t.data) + begin, end - begin);
  if (t.dtype == Dtype::kF32)
    return begin +
           first_non_finite(static_cast<const uint32_t*>(t.data) + begin, end - begin, t.dtype);
  return begin +
         first_non_finite(static_cast<const uint16_t*>(t.data) + begin, end - begin, t.dtype);
}

std::string index_text(const StoredTensor& t, int64_t element) {
  std::vector<int64_t> index(t.shape.size());
  for (size_t axis = t.shape.size(); axis-- > 0; element /= t.shape[axis])
    index[axis] = element % t.shape[axis];
  return fmt::format("[{}]", fmt::join(index, ", "));
}

}  // namespace

Result<std::vector<std::string>> find_non_finite(
    const Checkpoint& checkpoint, const ModelConfig& config,
    const std::function<bool(int64_t, int64_t)>& progress) {
  constexpr int64_t kPiece = int64_t{8} << 20;  // elements between two calls of progress
  const WeightsReport report = account(checkpoint, config);
  int64_t total_bytes = 0, done_bytes = 0;
  for (const TensorReport& t : report.tensors)
    if (t.fate == kLoaded) total_bytes += t.size_bytes;

  std::vector<std::string> found;
  for (const TensorReport& row : report.tensors) {
    if (row.fate != kLoaded) continue;
    const StoredTensor& t = *checkpoint.find(row.name);
    const int64_t n = t.n_elements();
    const bool is_scale = row.n_parameters == 0;
    bool is_clean = true;
    for (int64_t begin = 0; begin < n; begin += kPiece) {
      const int64_t end = std::min(begin + kPiece, n);
      const int64_t bad = is_clean ? first_non_finite(t, is_scale, begin, end) : end;
      if (bad < end) {
        is_clean = false;
        found.push_back(fmt::format("tensor {} in {} has {} at {}", in_quotes(t.name), row.file,
                                    is_plain_float(t.dtype) ? load(t.data, t.dtype, bad) : NAN,
                                    index_text(t, bad)));
      }
      done_bytes += (end - begin) * size_bytes(t.dtype);
      if (!progress(done_bytes, total_bytes)) return cancelled("the check was stopped");
    }
  }
  return found;
}

}  // namespace bascule
