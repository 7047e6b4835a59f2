#include "format/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/json.h"
#include "base/quote.h"
#include "format/safetensors.h"

namespace bascule {

namespace fs = std::filesystem;

int64_t StoredTensor::n_elements() const {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

struct Checkpoint::State {
  fs::path folder;
  std::vector<fs::path> files;
  std::vector<MappedFile> mappings;
  std::map<std::string, StoredTensor, std::less<>> tensors;
  std::vector<std::string> notices;
};

namespace {

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kSingleName = "model.safetensors";
constexpr int64_t kMaxTextBytes = int64_t{1} << 30;

using WeightMap = std::map<std::string, std::string, std::less<>>;  // tensor to file name

Result<std::string> read_file(const fs::path& path) {
  BASCULE_TRY_ASSIGN(const MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  if (static_cast<int64_t>(bytes.size()) > kMaxTextBytes)
    return out_of_range(fmt::format("{}: {} bytes of text; at most {} are read", path.string(),
                                    bytes.size(), kMaxTextBytes));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string plural(size_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

// Names in the folder that end in `suffix`, sorted.
std::set<std::string> files_ending_in(const fs::path& folder, std::string_view suffix) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::string file = it->path().filename().string();
    if (file.ends_with(suffix)) names.insert(std::move(file));
  }
  return names;
}

// "model-00002-of-00003.safetensors" into "model", 2 and 3.
struct ShardName {
  std::string stem;
  int number = 0, count = 0;

  static std::optional<ShardName> parse(std::string_view file) {
    constexpr std::string_view kSuffix = ".safetensors", kOf = "-of-";
    if (!file.ends_with(kSuffix)) return std::nullopt;
    file.remove_suffix(kSuffix.size());
    const size_t of = file.rfind(kOf);
    if (of == file.npos) return std::nullopt;
    const size_t dash = file.substr(0, of).rfind('-');
    if (dash == file.npos) return std::nullopt;
    const auto number = parse_number(file.substr(dash + 1, of - dash - 1));
    const auto count = parse_number(file.substr(of + kOf.size()));
    if (!number || !count) return std::nullopt;
    return ShardName{std::string(file.substr(0, dash)), *number, *count};
  }

  std::string file(int which, int digits) const {
    return fmt::format("{}-{:0{}}-of-{:0{}}.safetensors", stem, which, digits, count, digits);
  }

 private:
  static std::optional<int> parse_number(std::string_view digits) {
    if (digits.empty() || digits.size() > 6) return std::nullopt;
    int n = 0;
    for (const char c : digits) {
      if (c < '0' || c > '9') return std::nullopt;
      n = n * 10 + (c - '0');
    }
    return n;
  }
};

// The index, if the folder has one.
Result<std::optional<WeightMap>> read_index(const fs::path& folder) {
  const fs::path path = folder / kIndexName;
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return std::optional<WeightMap>();
  BASCULE_TRY_ASSIGN(const std::string text, read_file(path));
  BASCULE_TRY_ASSIGN(const Json json, parse_json(text, path.string(),
                                                 {.max_depth = 8,
                                                  .max_bytes = int64_t{256} << 20,
                                                  .max_values = int64_t{1} << 22}));
  const Json* map = json.is_object() ? find_field(json, "weight_map") : nullptr;
  if (map == nullptr || !map->is_object() || map->empty())
    return data_loss(
        fmt::format("{}: no \"weight_map\" from tensor names to files", path.string()));
  WeightMap files;
  for (const auto& [tensor, file] : map->items()) {
    BASCULE_TRY_ASSIGN(
        std::string name,
        as_string(file, "weight_map of " + in_quotes(tensor)).with_context(path.string()));
    // A shard lies in the folder itself; an index is not to reach elsewhere.
    if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos)
      return invalid_argument(fmt::format("{}: tensor {} is in {}, which is not a file name",
                                          path.string(), in_quotes(tensor), in_quotes(name)));
    if (!name.ends_with(".safetensors"))
      return unsupported(fmt::format("{}: tensor {} is in {}; only .safetensors files are read",
                                     path.string(), in_quotes(tensor), in_quotes(name)));
    files.emplace(tensor, std::move(name));
  }
  return std::optional<WeightMap>(std::move(files));
}

// Why a folder has no weights to read.
Status no_weights(const fs::path& folder) {
  for (const char* suffix : {".bin", ".pt", ".pth", ".ckpt", ".pkl"}) {
    const auto found = files_ending_in(folder, suffix);
    if (!found.empty())
      return unsupported(
          fmt::format("{}: its weights are pickles ({}), which can run code when they are read, "
                      "and are refused. "
                      "Save the model as safetensors (transformers: save_pretrained)",
                      folder.string(), in_quotes(*found.begin())));
  }
  if (const auto found = files_ending_in(folder, ".gguf"); !found.empty())
    return unsupported(fmt::format("{}: {} is GGUF; only safetensors are read", folder.string(),
                                   in_quotes(*found.begin())));
  return not_found(fmt::format("{}: no *.safetensors file in this folder", folder.string()));
}

// The weight files when no index names them.
Result<std::set<std::string>> files_without_index(const fs::path& folder) {
  const std::set<std::string> found = files_ending_in(folder, ".safetensors");
  if (found.contains(kSingleName)) return std::set<std::string>{kSingleName};
  std::set<std::string> shards;
  for (const std::string& file : found)
    if (ShardName::parse(file)) shards.insert(file);
  if (shards.empty()) {
    if (found.empty()) return no_weights(folder);
    if (found.size() == 1) return found;
    return invalid_argument(fmt::format(
        "{}: {} and neither {} nor {}: which of them are the model is not known ({}, ...)",
        folder.string(), plural(found.size(), "*.safetensors file"), kSingleName, kIndexName,
        in_quotes(*found.begin())));
  }
  // All shards of one save, going by the first one's name.
  const auto first = *ShardName::parse(*shards.begin());
  const std::string_view name = *shards.begin();
  const int digits =
      static_cast<int>(name.size() - name.rfind('-') - 1 - std::string_view(".safetensors").size());
  std::set<std::string> wanted;
  for (int i = 1; i <= first.count; ++i) wanted.insert(first.file(i, digits));
  for (const std::string& file : shards)
    if (!wanted.contains(file))
      return invalid_argument(
          fmt::format("{}: shards of two saves, {} and {}, and no {} that says which are the model",
                      folder.string(), in_quotes(name), in_quotes(file), kIndexName));
  return wanted;
}

struct WeightFiles {
  std::set<std::string> names;
  std::optional<WeightMap> index;
};

Result<WeightFiles> weight_files(const fs::path& folder) {
  WeightFiles files;
  BASCULE_TRY_ASSIGN(files.index, read_index(folder));
  if (!files.index) {
    BASCULE_TRY_ASSIGN(files.names, files_without_index(folder));
    return files;
  }
  for (const auto& [tensor, file] : *files.index) files.names.insert(file);
  return files;
}

// Files that are named and not there, each with what is in its place.
std::vector<std::string> missing_of(const fs::path& folder, const std::set<std::string>& names) {
  std::vector<std::string> missing;
  for (const std::string& file : names) {
    const fs::path path = folder / file;
    std::error_code error;
    if (fs::exists(path, error)) continue;
    missing.push_back(fs::is_symlink(path, error)
                          ? fmt::format("{} (a link to {}, which does not exist)", file,
                                        fs::read_symlink(path, error).string())
                          : file);
  }
  return missing;
}

// A shard of the same save that the index leaves out is a fault of the index; other files
// (references, adapters, a second format) are somebody else's business, and said.
Status check_left_out(const fs::path& folder, const WeightFiles& files,
                      std::vector<std::string>& notices) {
  std::set<std::pair<std::string, int>> saves;
  for (const std::string& file : files.names)
    if (const auto shard = ShardName::parse(file)) saves.emplace(shard->stem, shard->count);
  std::vector<std::string> others;
  for (const std::string& file : files_ending_in(folder, ".safetensors")) {
    if (files.names.contains(file)) continue;
    const auto shard = ShardName::parse(file);
    if (shard && saves.contains({shard->stem, shard->count}))
      return data_loss(
          fmt::format("{}: the shard {} lies in the folder, and {} does not name it: the index is "
                      "of another save",
                      folder.string(), in_quotes(file), kIndexName));
    others.push_back(in_quotes(file));
  }
  if (!others.empty())
    notices.push_back(fmt::format("not part of the model, not read: {}", fmt::join(others, ", ")));
  return {};
}

}  // namespace

Result<std::vector<std::string>> missing_weight_files(const fs::path& folder) {
  BASCULE_TRY_ASSIGN(const WeightFiles files, weight_files(folder));
  return missing_of(folder, files.names);
}

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::~Checkpoint() = default;
const fs::path& Checkpoint::folder() const { return state_->folder; }
const std::vector<fs::path>& Checkpoint::files() const { return state_->files; }
const std::map<std::string, StoredTensor, std::less<>>& Checkpoint::tensors() const {
  return state_->tensors;
}
const std::vector<std::string>& Checkpoint::notices() const { return state_->notices; }

const StoredTensor* Checkpoint::find(std::string_view name) const {
  const auto found = state_->tensors.find(name);
  return found == state_->tensors.end() ? nullptr : &found->second;
}

Result<std::string> Checkpoint::read_text(std::string_view file_name) const {
  return read_file(state_->folder / file_name);
}

// Maps one file and enters its tensors.
Status Checkpoint::add_file(const std::string& name) {
  const fs::path path = state_->folder / name;
  BASCULE_TRY_ASSIGN(SafetensorsFile file, SafetensorsFile::open(path));
  const int index = static_cast<int>(state_->files.size());
  for (const SafetensorsEntry& e : file.header.entries) {
    StoredTensor tensor{e.name, e.dtype, e.shape, file.data(e), e.size_bytes, index};
    const auto [place, is_new] = state_->tensors.emplace(e.name, std::move(tensor));
    if (!is_new)
      return data_loss(fmt::format("{}: tensor {} is in two files, {} and {}",
                                   state_->folder.string(), in_quotes(e.name),
                                   state_->files[place->second.file].filename().string(), name));
  }
  state_->files.push_back(path);
  state_->mappings.push_back(std::move(file.mapping));
  return {};
}

namespace {

// What the index says against what the headers say.
Status check_index(const Checkpoint& checkpoint, const WeightMap& index,
                   std::vector<std::string>& notices) {
  const std::string where = (checkpoint.folder() / kIndexName).string();
  for (const auto& [name, file] : index) {
    const StoredTensor* tensor = checkpoint.find(name);
    if (tensor == nullptr)
      return data_loss(fmt::format("{}: tensor {} should be in {}, and is in no file", where,
                                   in_quotes(name), in_quotes(file)));
    const std::string actual = checkpoint.files()[tensor->file].filename().string();
    if (actual != file)
      return data_loss(
          fmt::format("{}: tensor {} should be in {}, and is in {}: index and files are "
                      "of different saves",
                      where, in_quotes(name), in_quotes(file), in_quotes(actual)));
  }
  for (const auto& [name, tensor] : checkpoint.tensors())
    if (!index.contains(name))
      notices.push_back(
          fmt::format("tensor {} is in {} and not in {}; it counts all the same", in_quotes(name),
                      checkpoint.files()[tensor.file].filename().string(), kIndexName));
  return {};
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return not_found(fmt::format("{}: {}", folder.string(),
                                 fs::exists(folder, error)
                                     ? "not a folder; a model is a folder with config.json and "
                                       "*.safetensors"
                                     : "no such folder"));
  BASCULE_TRY_ASSIGN(const WeightFiles files, weight_files(folder));
  // All of them are looked for before any is read: an interrupted download is told at once.
  if (const auto missing = missing_of(folder, files.names); !missing.empty())
    return not_found(fmt::format("{}: {} of {} missing: {}", folder.string(), missing.size(),
                                 plural(files.names.size(), "weight file"),
                                 fmt::join(missing, ", ")));

  std::unique_ptr<Checkpoint> checkpoint(new Checkpoint(std::make_unique<State>()));
  State& state = *checkpoint->state_;
  state.folder = folder;
  BASCULE_TRY(check_left_out(folder, files, state.notices));
  for (const std::string& file : files.names) BASCULE_TRY(checkpoint->add_file(file));
  if (files.index) BASCULE_TRY(check_index(*checkpoint, *files.index, state.notices));
  return checkpoint;
}

}  // namespace bascule
