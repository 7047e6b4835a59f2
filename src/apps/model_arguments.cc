#include "apps/model_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/quote.h"
#include "format/hub_cache.h"
#include "model/kv_layout.h"

namespace bascule {
namespace fs = std::filesystem;
namespace {

std::optional<Dtype> dtype_option(const Options& options, std::string_view name) {
  const std::string text = options.text(name);
  if (text == "f32") return Dtype::kF32;
  if (text == "bf16") return Dtype::kBf16;
  return {};  // auto
}

std::optional<ActivationScheme> scheme_option(const Options& options) {
  const std::string text = options.text("activations");
  if (text == "f32" || text == "bf16") return ActivationScheme::kPlain;
  for (const ActivationScheme scheme : {ActivationScheme::kInt8, ActivationScheme::kInt8All,
                                        ActivationScheme::kFp8, ActivationScheme::kDeclared})
    if (text == name(scheme)) return scheme;
  return {};  // auto
}

std::optional<float> number_option(const Options& options, std::string_view name) {
  if (!options.has(name)) return {};
  return float(options.number(name));
}

// What a cache of so many bytes, on all ranks together, holds for each group.
Result<int64_t> kv_tokens_of(int64_t bytes, const EngineOptions& options,
                             const ModelConfig& config) {
  const Dtype dtype =
      options.kv_dtype.value_or(resolve_activations(options.activations, options.kernels));
  const int64_t page_bytes = KvLayout(config, dtype).page_bytes() * options.layout.world();
  if (bytes < page_bytes)
    return invalid_argument(fmt::format("--kv-cache-bytes {}: one page of {} tokens takes {}",
                                        bytes, KvLayout::kPageSize, page_bytes));
  return bytes / page_bytes * KvLayout::kPageSize;
}

// Beside the installed program, then in the source tree that it was built from.
std::vector<fs::path> demo_folders() {
  std::vector<fs::path> folders;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back(program.parent_path().parent_path() / "share/bascule/models/demo");
  folders.push_back(fs::path(BASCULE_SOURCE_DIR) / "models/demo");
  return folders;
}

}  // namespace

Result<fs::path> resolve_model(const std::string& model) {
  if (!model.empty()) return find_model_folder(model);
  std::string looked;
  for (const fs::path& folder : demo_folders()) {
    std::error_code error;
    if (fs::exists(folder / "config.json", error)) return folder;
    looked += fmt::format("{}{}", looked.empty() ? "" : ", ", folder.string());
  }
  return not_found(fmt::format("no MODEL was named, and the demo model is not in {}", looked));
}

bool looks_like_model(const std::string& argument) {
  std::error_code error;
  if (fs::is_directory(argument, error)) return true;
  const auto is_space = [](unsigned char c) { return std::isspace(c) != 0; };
  if (std::ranges::any_of(argument, is_space)) return false;
  if (argument.starts_with("/") || argument.starts_with("./") || argument.starts_with("../"))
    return true;
  const std::string id = argument.substr(0, argument.find('@'));
  const size_t slash = id.find('/');
  const auto is_id = [](unsigned char c) {
    return std::isalnum(c) || c == '/' || c == '-' || c == '_' || c == '.';
  };
  return slash > 0 && slash != std::string::npos && slash + 1 < id.size() &&
         id.find('/', slash + 1) == std::string::npos && std::ranges::all_of(id, is_id);
}

Result<fs::path> only_model(const CommandLine& line) {
  if (line.positionals.size() > 1)
    return invalid_argument(
        fmt::format("{} comes after MODEL; one model is wanted", in_quotes(line.positionals[1])));
  return resolve_model(line.positionals.empty() ? "" : line.positionals[0]);
}

ConfigOverrides config_overrides(const Options& options) {
  return {.latent_norm_eps = number_option(options, "latent-norm-eps"),
          .index_norm_eps = number_option(options, "k-norm-eps")};
}

Status apply_model_defaults(const GenerationDefaults& d, Options& options) {
  const std::string where = "generation_config.json";
  const std::pair<const char*, std::optional<float>> numbers[] = {
      {"temperature", d.temperature},
      {"top-p", d.top_p},
      {"min-p", d.min_p},
      {"repetition-penalty", d.repetition_penalty}};
  for (const auto& [name, value] : numbers)
    if (value) BASCULE_TRY(options.set_model(name, fmt::format("{}", *value), where));
  if (d.top_k)
    BASCULE_TRY(options.set_model("top-k", fmt::format("{}", std::max(0, *d.top_k)), where));
  return {};
}

Result<std::vector<std::string>> pack_for(LoadedModel& model, const EngineOptions& engine,
                                          const Options& options, WeightUse use,
                                          const PackProgress& progress) {
  const ActivationScheme scheme = resolve_scheme(engine);
  const bool is_int8 = scheme == ActivationScheme::kInt8 || scheme == ActivationScheme::kInt8All;
  if (!is_int8 || engine.kernels == KernelMode::kReference) return std::vector<std::string>{};
  const std::string folder = options.text("pack-cache");
  const PackOptions pack{.cache = folder == "off"  ? ""
                                  : folder.empty() ? default_pack_cache()
                                                   : fs::path(folder),
                         .shapes_only = use == WeightUse::kShapes};
  return pack_weights(model, pack, progress);
}

Result<EngineOptions> engine_options(const Options& options, const ModelConfig& config) {
  const std::string kernels = options.text("kernels");
  EngineOptions result{
      .layout = {.tp = int(options.integer("tp")),
                 .ep = int(options.integer("ep")),
                 .dp = int(options.integer("dp"))},
      .n_threads = options.has("threads") ? int(options.integer("threads")) : 0,
      .kernels = kernels == "reference" ? KernelMode::kReference
                 : kernels == "fast"    ? KernelMode::kFast
                                        : KernelMode::kAuto,
      .cpu_target = options.text("cpu-target"),
      .activations = dtype_option(options, "activations"),
      .scheme = scheme_option(options),
      .kv_dtype = dtype_option(options, "kv-cache-dtype"),
      .max_context = options.has("max-model-len") ? options.integer("max-model-len") : 0,
      .max_batch_tokens = options.integer("max-batch-tokens")};
  result.keeps_prefixes = !options.flag("no-prefix-cache");
  if (options.has("max-num-seqs")) result.max_requests = options.integer("max-num-seqs");
  if (options.has("kv-cache-bytes")) {
    BASCULE_TRY_ASSIGN(result.kv_tokens,
                       kv_tokens_of(options.bytes("kv-cache-bytes"), result, config));
  }
  return result;
}

}  // namespace bascule
