#include "model/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "base/json.h"
#include "base/quote.h"

namespace bascule {
namespace {

// What differs between the two families where config.json is silent. Sources: the configuration
// classes of transformers; for the norms, docs/model.md.
struct Family {
  std::string_view model_type, architecture;
  bool index_rope_interleaved;
  bool groups_have_default;
  float latent_norm_eps;
};
constexpr Family kFamilies[] = {
    {"glm_moe_dsa", "GlmMoeDsaForCausalLM", true, true, 1e-5f},
    {"deepseek_v32", "DeepseekV32ForCausalLM", false, false, 1e-6f},
};
constexpr float kIndexNormEps = 1e-6f;  // in both, and no key of any file

// Bounds are ten or more times what any published model has: past them a file is damaged or
// hostile, and sizes computed from it would overflow or exhaust the machine.
constexpr int64_t kMaxLayers = 4096, kMaxHeads = 1 << 14, kMaxWidth = 1 << 20,
                  kMaxHeadWidth = 1 << 14, kMaxVocab = 1 << 24, kMaxPositions = int64_t{1} << 32,
                  kMaxExperts = 1 << 14, kMaxSharedExperts = 256, kMaxExpertTensors = 1 << 20;

// The fields of one object, each with an error that names it; remembers which took a default.
class Reader {
 public:
  Reader(const Json& object, std::vector<std::string>* defaulted)
      : object_(object), defaulted_(defaulted) {}

  const Json* find(std::string_view field) const { return find_field(object_, field); }
  Reader within(const Json& object) const { return {object, defaulted_}; }

  Result<int64_t> count(std::string_view field, int64_t low, int64_t high) const {
    const Json* value = find(field);
    if (value == nullptr) return missing(field, fmt::format("a whole number from {}", low));
    return in_range(*value, field, low, high);
  }
  Result<int64_t> count_or(std::string_view field, int64_t low, int64_t high,
                           int64_t otherwise) const {
    if (find(field) != nullptr) return count(field, low, high);
    return note(field, otherwise);
  }
  Result<double> positive(std::string_view field, double below) const {
    const Json* value = find(field);
    if (value == nullptr) return missing(field, "a positive number");
    BASCULE_TRY_ASSIGN(const double x, as_double(*value, field));
    if (!(x > 0 && x < below))
      return invalid_argument(
          fmt::format("{} is {}; a number above 0 and below {} is wanted", field, x, below));
    return x;
  }
  Result<double> positive_or(std::string_view field, double below, double otherwise) const {
    return find(field) == nullptr ? Result<double>(otherwise) : positive(field, below);
  }
  Result<bool> flag_or(std::string_view field, bool otherwise) const {
    if (const Json* value = find(field)) return as_bool(*value, field);
    return note(field, otherwise);
  }
  Result<std::string> string_or(std::string_view field, std::string_view otherwise) const {
    if (const Json* value = find(field)) return as_string(*value, field);
    return note(field, std::string(otherwise));
  }

  // The field may be absent, but where it is there it must be what this program computes.
  Status only(std::string_view field, std::string_view supported) const {
    BASCULE_TRY_ASSIGN(const std::string found, string_or(field, supported));
    if (found == supported) return {};
    return unsupported(fmt::format("{} is {}; only {} is supported", field, in_quotes(found),
                                   in_quotes(supported)));
  }
  Status only_flag(std::string_view field, bool supported) const {
    BASCULE_TRY_ASSIGN(const bool found, flag_or(field, supported));
    if (found == supported) return {};
    return unsupported(fmt::format("{} is {}; only {} is supported", field, found, supported));
  }

  Status missing(std::string_view field, std::string_view wanted) const {
    return invalid_argument(fmt::format("{} is missing; {} is wanted", field, wanted));
  }
  void note_line(std::string line) const { defaulted_->push_back(std::move(line)); }

 private:
  static Result<int64_t> in_range(const Json& value, std::string_view field, int64_t low,
                                  int64_t high) {
    BASCULE_TRY_ASSIGN(const int64_t n, as_int(value, field));
    if (n >= low && n <= high) return n;
    return invalid_argument(
        fmt::format("{} is {}; a whole number from {} to {} is wanted", field, n, low, high));
  }
  template <typename T>
  T note(std::string_view field, T otherwise) const {
    note_line(fmt::format("{} = {}", field, otherwise));
    return otherwise;
  }

  const Json& object_;
  std::vector<std::string>* defaulted_;
};

Status fault(std::string message) { return invalid_argument(std::move(message)); }

Result<const Family*> family_of(const Reader& file) {
  const Json* type = file.find("model_type");
  if (type == nullptr) return file.missing("model_type", "\"glm_moe_dsa\" or \"deepseek_v32\"");
  BASCULE_TRY_ASSIGN(const std::string name, as_string(*type, "model_type"));
  for (const Family& f : kFamilies)
    if (f.model_type == name) return &f;
  return unsupported(fmt::format(
      "model_type is {}, which this program does not run. It runs \"glm_moe_dsa\" (GLM-5, 5.1, "
      "5.2, 5.3) and \"deepseek_v32\" (DeepSeek-V3.2)",
      in_quotes(name)));
}

Status read_architecture(const Reader& file, const Family& family, ModelConfig& c) {
  c.architecture = family.architecture;
  const Json* list = file.find("architectures");
  if (list == nullptr) {
    file.note_line(fmt::format("architectures = [\"{}\"]", family.architecture));
    return {};
  }
  if (!list->is_array() || list->size() != 1)
    return fault(fmt::format("architectures is {}; a list of one name is wanted", describe(*list)));
  BASCULE_TRY_ASSIGN(const std::string name, as_string((*list)[0], "architectures[0]"));
  if (name == family.architecture) return {};
  return unsupported(
      fmt::format("architectures names {}; for model_type \"{}\" only \"{}\" is "
                  "supported",
                  in_quotes(name), family.model_type, family.architecture));
}

Status read_sizes(const Reader& file, ModelConfig& c) {
  BASCULE_TRY_ASSIGN(c.vocab_size, file.count("vocab_size", 1, kMaxVocab));
  BASCULE_TRY_ASSIGN(c.d_model, file.count("hidden_size", 1, kMaxWidth));
  BASCULE_TRY_ASSIGN(c.n_layers, file.count("num_hidden_layers", 1, kMaxLayers));
  BASCULE_TRY_ASSIGN(c.n_draft_layers, file.count_or("num_nextn_predict_layers", 0, 1, 0));
  BASCULE_TRY_ASSIGN(c.max_positions, file.count("max_position_embeddings", 1, kMaxPositions));
  BASCULE_TRY_ASSIGN(const double eps, file.positive("rms_norm_eps", 1));
  c.norm_eps = static_cast<float>(eps);
  return {};
}

Status read_attention(const Reader& file, ModelConfig& c) {
  BASCULE_TRY_ASSIGN(c.n_heads, file.count("num_attention_heads", 1, kMaxHeads));
  BASCULE_TRY_ASSIGN(c.q_rank, file.count("q_lora_rank", 1, kMaxWidth));
  BASCULE_TRY_ASSIGN(c.kv_rank, file.count("kv_lora_rank", 1, kMaxWidth));
  BASCULE_TRY_ASSIGN(c.d_nope, file.count("qk_nope_head_dim", 1, kMaxHeadWidth));
  BASCULE_TRY_ASSIGN(c.d_rope, file.count("qk_rope_head_dim", 2, kMaxHeadWidth));
  BASCULE_TRY_ASSIGN(c.d_v, file.count("v_head_dim", 1, kMaxHeadWidth));
  if (c.d_rope % 2 != 0)
    return fault(fmt::format(
        "qk_rope_head_dim is {}; rope turns pairs, so an even number is wanted", c.d_rope));
  // head_dim is not looked at: published files hold 64 or 192 there, and neither is a width of
  // this attention.
  if (file.find("qk_head_dim") != nullptr) {
    BASCULE_TRY_ASSIGN(const int64_t d_qk, file.count("qk_head_dim", 1, 2 * kMaxHeadWidth));
    if (d_qk != c.d_qk())
      return fault(fmt::format("qk_head_dim is {}; qk_nope_head_dim + qk_rope_head_dim is {}", d_qk,
                               c.d_qk()));
  }
  BASCULE_TRY(file.only_flag("attention_bias", false));
  BASCULE_TRY_ASSIGN(c.rope_interleaved, file.flag_or("rope_interleave", true));
  return {};
}

Result<YarnScaling> read_yarn(const Reader& rope) {
  if (rope.find("attention_factor") != nullptr)
    return unsupported("attention_factor is set; this program takes YaRN's factor from mscale");
  YarnScaling yarn;
  BASCULE_TRY_ASSIGN(yarn.factor, rope.positive("factor", 1e6));
  BASCULE_TRY_ASSIGN(const int64_t positions,
                     rope.count("original_max_position_embeddings", 1, kMaxPositions));
  yarn.original_max_positions = static_cast<double>(positions);
  BASCULE_TRY_ASSIGN(yarn.beta_fast, rope.positive_or("beta_fast", 1e6, yarn.beta_fast));
  BASCULE_TRY_ASSIGN(yarn.beta_slow, rope.positive_or("beta_slow", 1e6, yarn.beta_slow));
  BASCULE_TRY_ASSIGN(yarn.mscale, rope.positive_or("mscale", 1e3, yarn.mscale));
  if (const Json* value = rope.find("mscale_all_dim")) {
    BASCULE_TRY_ASSIGN(yarn.mscale_all_dim, as_double(*value, "mscale_all_dim"));
    if (!(yarn.mscale_all_dim >= 0 && yarn.mscale_all_dim < 1e3))
      return fault(fmt::format("mscale_all_dim is {}; a number from 0 to 1000 is wanted",
                               yarn.mscale_all_dim));
  }
  if (yarn.factor < 1) return fault(fmt::format("factor is {}; at least 1 is wanted", yarn.factor));
  if (yarn.beta_slow >= yarn.beta_fast)
    return fault(fmt::format("beta_slow is {} and beta_fast {}; slow must be below fast",
                             yarn.beta_slow, yarn.beta_fast));
  return yarn;
}

// What an object about rope says: rope_parameters, or the older rope_scaling.
struct Rope {
  std::optional<double> theta;
  std::optional<YarnScaling> yarn;
};

Result<Rope> read_rope_object(const Json& object, const Reader& file) {
  if (!object.is_object()) return fault(fmt::format("{}; an object is wanted", describe(object)));
  const Reader reader = file.within(object);
  Rope rope;
  if (reader.find("rope_theta") != nullptr) {
    BASCULE_TRY_ASSIGN(rope.theta, reader.positive("rope_theta", 1e15));
  }
  const Json* type = reader.find("rope_type");
  if (type == nullptr) type = reader.find("type");  // as older files call it
  if (type == nullptr) {
    if (reader.find("factor") != nullptr)
      return reader.missing("rope_type", "\"yarn\", since there is a factor,");
    file.note_line("rope_type = default");
    return rope;
  }
  BASCULE_TRY_ASSIGN(const std::string kind, as_string(*type, "rope_type"));
  if (kind == "yarn") {
    BASCULE_TRY_ASSIGN(rope.yarn, read_yarn(reader));
  } else if (kind != "default") {
    return unsupported(fmt::format("rope_type is {}; only \"default\" and \"yarn\" are supported",
                                   in_quotes(kind)));
  }
  return rope;
}

// theta stands within rope_parameters (GLM-5, and all that transformers 5 saves) or at the top
// level. There is no default: a model read with another theta answers nonsense. Two places that
// contradict each other are an error.
Status read_rope(const Reader& file, ModelConfig& c) {
  std::vector<Rope> said;
  for (const char* name : {"rope_parameters", "rope_scaling"}) {
    const Json* object = file.find(name);
    if (object == nullptr) continue;
    BASCULE_TRY_ASSIGN(const Rope rope, read_rope_object(*object, file).with_context(name));
    said.push_back(rope);
  }
  if (said.size() == 2 && said[0].yarn != said[1].yarn)
    return fault("rope_parameters and rope_scaling scale differently; one of them is wanted");
  if (!said.empty()) c.yarn = said[0].yarn;

  std::vector<double> thetas;
  for (const Rope& rope : said)
    if (rope.theta) thetas.push_back(*rope.theta);
  if (file.find("rope_theta") != nullptr) {
    BASCULE_TRY_ASSIGN(const double top, file.positive("rope_theta", 1e15));
    thetas.push_back(top);
  }
  if (thetas.empty())
    return file.missing("rope_theta", "a number, in rope_parameters or at the top level,");
  c.rope_theta = thetas[0];
  for (const double theta : thetas)
    if (theta != c.rope_theta)
      return fault(fmt::format("rope_theta is {} in rope_parameters and {} at the top level",
                               c.rope_theta, theta));
  if (c.rope_theta < 1)
    return fault(fmt::format("rope_theta is {}; at least 1 is wanted", c.rope_theta));
  return {};
}

// The list of strings at `field`, one a layer and perhaps more; each one of the two words, true for
// the first.
Result<std::vector<bool>> read_layer_words(const Json& list, std::string_view field,
                                           int64_t n_layers, std::string_view yes,
                                           std::string_view no) {
  if (!list.is_array())
    return fault(fmt::format("{} is {}; a list is wanted", field, describe(list)));
  if (static_cast<int64_t>(list.size()) < n_layers)
    return fault(fmt::format("{} has {} entries for {} layers", field, list.size(), n_layers));
  std::vector<bool> words;
  for (int64_t i = 0; i < n_layers; ++i) {
    const std::string entry = fmt::format("{}[{}]", field, i);
    BASCULE_TRY_ASSIGN(const std::string word, as_string(list[static_cast<size_t>(i)], entry));
    if (word != yes && word != no)
      return fault(
          fmt::format("{} is {}; \"{}\" or \"{}\" is wanted", entry, in_quotes(word), yes, no));
    words.push_back(word == yes);
  }
  return words;
}

Result<std::vector<bool>> owners_by_pattern(const Json& value, int64_t n_layers) {
  BASCULE_TRY_ASSIGN(const std::string pattern, as_string(value, "index_topk_pattern"));
  if (static_cast<int64_t>(pattern.size()) < n_layers)
    return fault(fmt::format("index_topk_pattern has {} characters for {} layers", pattern.size(),
                             n_layers));
  if (pattern.find_first_not_of("FS") != pattern.npos)
    return fault(fmt::format("index_topk_pattern is {}; only F (full) and S (shared) are wanted",
                             in_quotes(pattern)));
  std::vector<bool> owners;
  for (int64_t i = 0; i < n_layers; ++i) owners.push_back(pattern[static_cast<size_t>(i)] == 'F');
  return owners;
}

// Every freq-th layer owns an indexer, counted from the offset; the layers before it all do.
Result<std::vector<bool>> owners_by_rule(const Reader& file, int64_t n_layers) {
  int64_t freq = 1, offset = 2;
  if (file.find("index_topk_freq") != nullptr) {
    BASCULE_TRY_ASSIGN(freq, file.count("index_topk_freq", 1, kMaxLayers));
  }
  if (file.find("index_skip_topk_offset") != nullptr) {
    BASCULE_TRY_ASSIGN(offset, file.count("index_skip_topk_offset", 0, kMaxLayers));
  }
  std::vector<bool> owners;
  for (int64_t i = 0; i < n_layers; ++i)
    owners.push_back(std::max<int64_t>(i - offset + 1, 0) % freq == 0);
  return owners;
}

// The literal list, else the pattern, else the rule; without any of their keys all layers own one.
Result<std::vector<bool>> read_owners(const Reader& file, int64_t n_layers) {
  if (const Json* list = file.find("indexer_types")) {
    if (!list->is_array() || static_cast<int64_t>(list->size()) >= n_layers)
      return read_layer_words(*list, "indexer_types", n_layers, "full", "shared");
    file.note_line(fmt::format("indexer_types has {} entries for {} layers and is not used",
                               list->size(), n_layers));
  }
  if (const Json* pattern = file.find("index_topk_pattern"))
    return owners_by_pattern(*pattern, n_layers);
  return owners_by_rule(file, n_layers);
}

Status read_indexer(const Reader& file, const Family& family, ModelConfig& c) {
  BASCULE_TRY_ASSIGN(c.n_index_heads, file.count("index_n_heads", 1, kMaxHeads));
  BASCULE_TRY_ASSIGN(c.d_index, file.count("index_head_dim", 1, kMaxHeadWidth));
  BASCULE_TRY_ASSIGN(c.index_topk, file.count("index_topk", 1, kMaxVocab));
  if (c.d_index < c.d_rope)
    return fault(
        fmt::format("index_head_dim is {}, below qk_rope_head_dim {}, which the indexer "
                    "rotates within it",
                    c.d_index, c.d_rope));
  BASCULE_TRY_ASSIGN(c.index_rope_interleaved,
                     file.flag_or("indexer_rope_interleave", family.index_rope_interleaved));
  BASCULE_TRY_ASSIGN(c.owns_indexer, read_owners(file, c.n_layers));
  if (!c.owns_indexer[0])
    return fault(
        "layer 0 shares an indexer, and there is no layer before it: its type must be full");
  if (c.n_draft_layers > 0) {
    BASCULE_TRY_ASSIGN(c.index_share_for_draft_iteration,
                       file.flag_or("index_share_for_mtp_iteration", false));
  }
  return {};
}

Status read_sparse_layers(const Reader& file, ModelConfig& c) {
  if (const Json* list = file.find("mlp_layer_types")) {
    BASCULE_TRY_ASSIGN(c.is_sparse,
                       read_layer_words(*list, "mlp_layer_types", c.n_layers, "sparse", "dense"));
    return {};
  }
  BASCULE_TRY_ASSIGN(const int64_t n_dense, file.count("first_k_dense_replace", 0, kMaxLayers));
  BASCULE_TRY_ASSIGN(const int64_t freq, file.count_or("moe_layer_freq", 1, kMaxLayers, 1));
  for (int64_t i = 0; i < c.n_layers; ++i) c.is_sparse.push_back(i >= n_dense && i % freq == 0);
  return {};
}

Status read_groups(const Reader& file, const Family& family, ModelConfig& c) {
  const auto read = [&](std::string_view field) {
    return family.groups_have_default ? file.count_or(field, 1, kMaxExperts, 1)
                                      : file.count(field, 1, kMaxExperts);
  };
  BASCULE_TRY_ASSIGN(c.n_expert_groups, read("n_group"));
  BASCULE_TRY_ASSIGN(c.n_active_expert_groups, read("topk_group"));
  const int64_t n_groups = c.n_expert_groups, n_active = c.n_active_expert_groups;
  if (c.n_experts % n_groups != 0)
    return fault(fmt::format("n_group is {}, which does not divide n_routed_experts {}", n_groups,
                             c.n_experts));
  if (n_active > n_groups)
    return fault(fmt::format("topk_group is {}, above n_group {}", n_active, n_groups));
  const int64_t group_size = c.n_experts / n_groups;
  if (n_groups > 1 && group_size < 2)
    return fault(
        fmt::format("n_group is {} for {} experts; groups are ranked by their two best "
                    "experts, so each needs two",
                    n_groups, c.n_experts));
  if (c.n_active_experts > n_active * group_size)
    return fault(
        fmt::format("num_experts_per_tok is {}; the {} groups that topk_group keeps have {} "
                    "experts",
                    c.n_active_experts, n_active, n_active * group_size));
  return {};
}

Status read_feed_forward(const Reader& file, const Family& family, ModelConfig& c) {
  BASCULE_TRY_ASSIGN(c.d_dense, file.count("intermediate_size", 1, kMaxWidth));
  BASCULE_TRY_ASSIGN(c.d_expert, file.count("moe_intermediate_size", 1, kMaxWidth));
  BASCULE_TRY_ASSIGN(c.n_experts, file.count("n_routed_experts", 1, kMaxExperts));
  BASCULE_TRY_ASSIGN(c.n_active_experts, file.count("num_experts_per_tok", 1, kMaxExperts));
  BASCULE_TRY_ASSIGN(c.n_shared_experts, file.count("n_shared_experts", 0, kMaxSharedExperts));
  if (c.n_active_experts > c.n_experts)
    return fault(fmt::format("num_experts_per_tok is {}, above n_routed_experts {}",
                             c.n_active_experts, c.n_experts));
  if ((c.n_layers + c.n_draft_layers) * c.n_experts > kMaxExpertTensors)
    return fault(fmt::format("num_hidden_layers {} times n_routed_experts {} is past {} experts",
                             c.n_layers, c.n_experts, kMaxExpertTensors));
  BASCULE_TRY(read_sparse_layers(file, c));
  BASCULE_TRY(read_groups(file, family, c));
  BASCULE_TRY(file.only("hidden_act", "silu"));
  BASCULE_TRY(file.only("scoring_func", "sigmoid"));
  BASCULE_TRY(file.only("topk_method", "noaux_tc"));
  c.scoring = ExpertScoring::kSigmoid;
  BASCULE_TRY_ASSIGN(c.normalise_expert_weights, file.flag_or("norm_topk_prob", true));
  BASCULE_TRY_ASSIGN(c.expert_scale, file.positive("routed_scaling_factor", 1e6));
  return {};
}

// Keys that later siblings have and that change the arithmetic.
Status refuse_unknown_arithmetic(const Reader& file) {
  if (const Json* dtype = file.find("moe_router_dtype")) {
    BASCULE_TRY_ASSIGN(const std::string name, as_string(*dtype, "moe_router_dtype"));
    if (name != "float32")
      return unsupported(fmt::format(
          "moe_router_dtype is {}; the router is computed in \"float32\"", in_quotes(name)));
  }
  if (const Json* bias = file.find("mlp_bias")) {
    BASCULE_TRY_ASSIGN(const bool has_bias, as_bool(*bias, "mlp_bias"));
    if (has_bias) return unsupported("mlp_bias is true; only false is supported");
  }
  if (const Json* limit = file.find("swiglu_limit"))
    return unsupported(fmt::format("swiglu_limit is {}; activations without a clamp are supported",
                                   describe(*limit)));
  return {};
}

// A token id, or a list of them.
Result<std::vector<int32_t>> read_tokens(const Json& value, std::string_view field,
                                         int64_t vocab_size) {
  std::vector<int32_t> tokens;
  const auto add = [&](const Json& item) -> Status {
    BASCULE_TRY_ASSIGN(const int64_t id, as_int(item, field));
    if (id < 0 || id >= vocab_size)
      return fault(fmt::format("{} has {}; token ids go from 0 to {}", field, id, vocab_size - 1));
    tokens.push_back(static_cast<int32_t>(id));
    return {};
  };
  if (!value.is_array()) {
    BASCULE_TRY(add(value));
    return tokens;
  }
  for (const Json& item : value) BASCULE_TRY(add(item));
  return tokens;
}

Status read_special_tokens(const Reader& file, ModelConfig& c) {
  if (const Json* eos = file.find("eos_token_id")) {
    BASCULE_TRY_ASSIGN(c.eos_tokens, read_tokens(*eos, "eos_token_id", c.vocab_size));
  }
  if (const Json* pad = file.find("pad_token_id")) {
    BASCULE_TRY_ASSIGN(const int64_t id, as_int(*pad, "pad_token_id"));
    if (id < -1 || id >= c.vocab_size)
      return fault(
          fmt::format("pad_token_id is {}; token ids go from 0 to {}", id, c.vocab_size - 1));
    if (id >= 0) c.pad_token = static_cast<int32_t>(id);  // -1 is how some files say "none"
  }
  return {};
}

Result<Json> parse_object(std::string_view text, const std::string& where) {
  BASCULE_TRY_ASSIGN(Json json, parse_json(text, where));
  if (!json.is_object())
    return invalid_argument(fmt::format("{}: {}; an object is wanted", where, describe(json)));
  return json;
}

Result<ModelConfig> read_config(const Json& json) {
  ModelConfig c;
  const Reader file(json, &c.defaulted);
  BASCULE_TRY_ASSIGN(const Family* family, family_of(file));
  c.model_type = family->model_type;
  BASCULE_TRY(read_architecture(file, *family, c));
  BASCULE_TRY(refuse_unknown_arithmetic(file));
  BASCULE_TRY(read_sizes(file, c));
  BASCULE_TRY(read_attention(file, c));
  BASCULE_TRY(read_rope(file, c));
  BASCULE_TRY(read_indexer(file, *family, c));
  BASCULE_TRY(read_feed_forward(file, *family, c));
  BASCULE_TRY_ASSIGN(c.tied_head, file.flag_or("tie_word_embeddings", false));
  BASCULE_TRY(read_special_tokens(file, c));
  c.latent_norm_eps = family->latent_norm_eps;
  c.index_norm_eps = kIndexNormEps;
  return c;
}

}  // namespace

Result<ModelConfig> parse_config(std::string_view text, const std::string& where) {
  BASCULE_TRY_ASSIGN(const Json json, parse_object(text, where));
  return read_config(json).with_context(where);
}

int64_t ModelConfig::n_index_layers() const {
  return std::count(owns_indexer.begin(), owns_indexer.end(), true);
}

double ModelConfig::softmax_scale() const {
  const double scale = 1 / std::sqrt(static_cast<double>(d_qk()));
  if (!yarn) return scale;
  const double mscale = 0.1 * yarn->mscale_all_dim * std::log(yarn->factor) + 1;
  return scale * mscale * mscale;
}

namespace {

Result<std::optional<float>> read_number(const Json& json, std::string_view field, double low,
                                         double high) {
  const Json* value = find_field(json, field);
  if (value == nullptr) return std::optional<float>();
  BASCULE_TRY_ASSIGN(const double x, as_double(*value, field));
  if (!(x >= low && x <= high))
    return fault(fmt::format("{} is {}; a number from {} to {} is wanted", field, x, low, high));
  return std::optional<float>(static_cast<float>(x));
}

Result<GenerationDefaults> read_generation_config(const Json& json) {
  GenerationDefaults d;
  BASCULE_TRY_ASSIGN(d.temperature, read_number(json, "temperature", 0, 100));
  BASCULE_TRY_ASSIGN(d.top_p, read_number(json, "top_p", 0, 1));
  BASCULE_TRY_ASSIGN(d.min_p, read_number(json, "min_p", 0, 1));
  BASCULE_TRY_ASSIGN(d.repetition_penalty, read_number(json, "repetition_penalty", 1e-3, 1e3));
  if (const Json* value = find_field(json, "top_k")) {
    BASCULE_TRY_ASSIGN(const int64_t k, as_int(*value, "top_k"));
    if (k < 0 || k > kMaxVocab)
      return fault(fmt::format("top_k is {}; a whole number from 0 to {} is wanted", k, kMaxVocab));
    d.top_k = static_cast<int>(k);
  }
  if (const Json* value = find_field(json, "eos_token_id")) {
    BASCULE_TRY_ASSIGN(d.eos_tokens, read_tokens(*value, "eos_token_id", kMaxVocab));
  }
  return d;
}

}  // namespace

Result<GenerationDefaults> parse_generation_config(std::string_view text,
                                                   const std::string& where) {
  BASCULE_TRY_ASSIGN(const Json json, parse_object(text, where));
  return read_generation_config(json).with_context(where);
}

}  // namespace bascule
