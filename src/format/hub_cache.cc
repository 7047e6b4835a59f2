#include "format/hub_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/quote.h"
#include "format/checkpoint.h"

namespace bascule {

namespace fs = std::filesystem;

namespace {

// "ORG/NAME" or "ORG/NAME@REVISION".
struct HubId {
  std::string organisation, name;
  std::string revision;  // a branch, a tag or a commit; empty: the default branch

  static std::optional<HubId> parse(std::string_view text) {
    HubId id;
    if (const size_t at = text.find('@'); at != text.npos) {
      id.revision = text.substr(at + 1);
      text = text.substr(0, at);
      if (!is_revision(id.revision)) return std::nullopt;
    }
    const size_t slash = text.find('/');
    if (slash == text.npos) return std::nullopt;
    id.organisation = text.substr(0, slash);
    id.name = text.substr(slash + 1);
    if (!is_part(id.organisation) || !is_part(id.name)) return std::nullopt;
    return id;
  }

  std::string download_command() const {
    return fmt::format("hf download {}/{}{}", organisation, name,
                       revision.empty() ? "" : " --revision " + revision);
  }

 private:
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  }
  static bool is_part(std::string_view part) {
    return !part.empty() && part.size() <= 96 && part[0] != '.' && part[0] != '-' &&
           std::all_of(part.begin(), part.end(), is_word);
  }
  // Branches may have slashes ("refs/pr/7"); no part may climb ("..") or be empty.
  static bool is_revision(std::string_view text) {
    for (;;) {
      const size_t slash = text.find('/');
      if (!is_part(text.substr(0, slash))) return false;
      if (slash == text.npos) return true;
      text.remove_prefix(slash + 1);
    }
  }
};

// Snapshots of the repository, by commit.
std::vector<fs::path> snapshots_of(const fs::path& repository) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(repository / "snapshots", error), end; !error && it != end;
       it.increment(error))
    if (fs::is_directory(it->path(), error)) found.push_back(it->path());
  std::sort(found.begin(), found.end());
  return found;
}

// The commit that a branch or tag stands for here; empty where it is not known.
std::string commit_of(const fs::path& repository, const std::string& revision) {
  std::ifstream file(repository / "refs" / revision);
  std::string commit;
  file >> commit;
  const bool is_commit =
      commit.size() == 40 && std::all_of(commit.begin(), commit.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      });
  return is_commit ? commit : "";
}

Result<fs::path> find_snapshot(const HubId& id, const fs::path& repository) {
  const std::string branch = id.revision.empty() ? "main" : id.revision;
  std::error_code error;
  if (const std::string commit = commit_of(repository, branch); !commit.empty()) {
    const fs::path snapshot = repository / "snapshots" / commit;
    if (fs::is_directory(snapshot, error)) return snapshot;
  }
  const std::vector<fs::path> snapshots = snapshots_of(repository);
  if (!id.revision.empty()) {  // a commit, whole or its beginning
    std::vector<fs::path> matching;
    for (const fs::path& s : snapshots)
      if (s.filename().string().starts_with(id.revision)) matching.push_back(s);
    if (matching.size() == 1 && id.revision.size() >= 7) return matching[0];
  } else if (snapshots.size() == 1) {  // downloaded by commit: no branch is recorded
    return snapshots[0];
  }
  return not_found(
      fmt::format("{}/{}: revision {} is not in the Hub cache ({}, which has {} other). "
                  "To download it: {}",
                  id.organisation, id.name, in_quotes(branch), repository.string(),
                  snapshots.size(), id.download_command()));
}

// A snapshot holds links that appear as each file is done, so that an interrupted download looks
// like a smaller model.
Status check_complete(const HubId& id, const fs::path& snapshot) {
  std::vector<std::string> missing;
  std::error_code error;
  if (!fs::exists(snapshot / "config.json", error)) missing.emplace_back("config.json");
  const auto weights = missing_weight_files(snapshot);
  if (!weights.ok() && weights.status().code() != Code::kNotFound) return weights.status();
  if (!weights.ok()) missing.emplace_back("*.safetensors");
  if (weights.ok()) missing.insert(missing.end(), weights->begin(), weights->end());
  if (missing.empty()) return {};
  return not_found(
      fmt::format("{}/{}: its download is not complete; missing in {}: {}. To complete "
                  "it: {}",
                  id.organisation, id.name, snapshot.string(), fmt::join(missing, ", "),
                  id.download_command()));
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

fs::path hub_cache_folder() {
  if (const std::string cache = environment("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const std::string home = environment("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty())
    return fs::path(cache) / "huggingface" / "hub";
  return fs::path(environment("HOME")) / ".cache" / "huggingface" / "hub";
}

Result<fs::path> find_model_folder(std::string_view model) {
  return find_model_folder(model, hub_cache_folder());
}

Result<fs::path> find_model_folder(std::string_view model, const fs::path& hub_cache) {
  const fs::path folder(model);
  std::error_code error;
  if (fs::is_directory(folder, error)) return folder;
  if (fs::exists(folder, error))
    return invalid_argument(
        fmt::format("{}: a file; MODEL is a folder with config.json and "
                    "*.safetensors, or a Hub id",
                    folder.string()));
  const auto id = HubId::parse(model);
  if (!id)
    return not_found(
        fmt::format("{}: no such folder, and not a Hub id (ORG/NAME or "
                    "ORG/NAME@REVISION)",
                    in_quotes(model)));
  const fs::path repository = hub_cache / fmt::format("models--{}--{}", id->organisation, id->name);
  if (!fs::is_directory(repository, error))
    return not_found(
        fmt::format("{}: no such folder, and not in the Hub cache ({}). To download it: "
                    "{}",
                    model, hub_cache.string(), id->download_command()));
  BASCULE_TRY_ASSIGN(const fs::path snapshot, find_snapshot(*id, repository));
  BASCULE_TRY(check_complete(*id, snapshot));
  return snapshot;
}

}  // namespace bascule
