// A checkpoint in Hugging Face layout, opened: which files there are and which tensors they hold.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/dtype.h"

namespace bascule {

// One tensor as a file declares it. `data` looks into the mapping and lives as long as the
// Checkpoint.
struct StoredTensor {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  const void* data = nullptr;
  int64_t size_bytes = 0;
  int file = 0;  // index into Checkpoint::files()

  int64_t n_elements() const;
};

class Checkpoint {
 public:
  // Opens a folder that holds config.json and *.safetensors (one file, or shards under
  // model.safetensors.index.json). Reads headers only; weights stay in the mapping. Errors name the
  // file: a missing, truncated, overlapping or misdeclared one, a tensor in two shards, a shard
  // that the index names and that is not there.
  static Result<std::unique_ptr<Checkpoint>> open(const std::filesystem::path& folder);
  ~Checkpoint();

  const std::filesystem::path& folder() const;
  const std::vector<std::filesystem::path>& files() const;
  const std::map<std::string, StoredTensor, std::less<>>& tensors() const;
  const StoredTensor* find(std::string_view name) const;  // null where there is none

  // Things a person should know that are no errors: a tensor that the index leaves out, for
  // example.
  const std::vector<std::string>& notices() const;

  // A file of the folder as text; kNotFound names the path.
  Result<std::string> read_text(std::string_view file_name) const;

 private:
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  Status add_file(const std::string& name);
  std::unique_ptr<State> state_;
};

// Weight files that the folder's index, or the numbers in its shards' names, call for and that are
// not there. Fails where nothing says which files are the model.
Result<std::vector<std::string>> missing_weight_files(const std::filesystem::path& folder);

}  // namespace bascule
