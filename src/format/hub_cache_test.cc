#include "format/hub_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <optional>

#include "format/safetensors.h"
#include "support/temp_folder.h"

namespace bascule {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";
const std::string kOther = "fedcba9876543210fedcba9876543210fedcba98";

class HubCache : public testing::Test {
 protected:
  // A snapshot as `hf download` leaves it: files are links into blobs/.
  fs::path snapshot(const std::string& commit) {
    const fs::path folder = repository() / "snapshots" / commit;
    link(folder, "config.json", "{}");
    const uint8_t value = 1;
    const std::vector<TensorToWrite> tensors = {{"a", Dtype::kU8, {1}, &value}};
    EXPECT_TRUE(write_safetensors(repository() / "blobs" / "weights", tensors).ok());
    fs::create_symlink("../../blobs/weights", folder / "model-00001-of-00002.safetensors");
    fs::create_symlink("../../blobs/weights", folder / "model-00002-of-00002.safetensors");
    return folder;
  }
  void link(const fs::path& folder, const char* name, const char* text) {
    fs::create_directories(folder);
    cache_.write("models--org--Some.Model-1/blobs/" + std::string(name), text);
    fs::create_symlink(fs::path("../../blobs") / name, folder / name);
  }
  void branch(const std::string& name, const std::string& commit) {
    cache_.write("models--org--Some.Model-1/refs/" + name, commit);
  }
  fs::path repository() const { return cache_.path() / "models--org--Some.Model-1"; }
  Result<fs::path> find(std::string_view model) { return find_model_folder(model, cache_.path()); }
  std::string error(std::string_view model) {
    const auto found = find(model);
    EXPECT_FALSE(found.ok());
    return found.ok() ? "" : found.status().message();
  }

  TempFolder cache_;
};

TEST_F(HubCache, TakesAFolderAsItIs) {
  EXPECT_EQ(*find(cache_.path().string()), cache_.path());
  EXPECT_THAT(error(cache_.write("model.gguf", "").string()),
              HasSubstr("a file; MODEL is a folder"));
}

TEST_F(HubCache, FindsTheDefaultBranchABranchATagAndACommit) {
  const fs::path main = snapshot(kCommit);
  branch("main", kCommit);
  EXPECT_EQ(*find("org/Some.Model-1"), main);
  EXPECT_EQ(*find("org/Some.Model-1@main"), main);
  EXPECT_EQ(*find("org/Some.Model-1@" + kCommit), main);
  EXPECT_EQ(*find("org/Some.Model-1@0123456"), main);

  fs::rename(repository() / "snapshots", repository() / "old");
  const fs::path pull_request = snapshot(kOther);
  fs::rename(repository() / "old" / kCommit, main);
  branch("refs/pr/7", kOther);
  EXPECT_EQ(*find("org/Some.Model-1@refs/pr/7"), pull_request);
  EXPECT_EQ(*find("org/Some.Model-1"), main);
}

TEST_F(HubCache, FindsTheOnlySnapshotOfADownloadByCommit) {
  const fs::path only = snapshot(kCommit);
  EXPECT_EQ(*find("org/Some.Model-1"), only);
  fs::create_directories(repository() / "snapshots" / kOther);
  EXPECT_THAT(error("org/Some.Model-1"), HasSubstr("revision \"main\" is not in the Hub cache"));
}

TEST_F(HubCache, SaysTheCommandThatWouldDownloadIt) {
  EXPECT_THAT(error("zai-org/GLM-5.2"), EndsWith("To download it: hf download zai-org/GLM-5.2"));
  EXPECT_THAT(error("zai-org/GLM-5.2@v1.0"),
              EndsWith("hf download zai-org/GLM-5.2 --revision v1.0"));
  snapshot(kCommit);
  EXPECT_THAT(error("org/Some.Model-1@dev"),
              AllOf(HasSubstr("revision \"dev\" is not in the Hub cache"),
                    EndsWith("hf download org/Some.Model-1 --revision dev")));
}

// https://github.com/sgl-project/sglang/pull/32279
TEST_F(HubCache, SaysWhatAnInterruptedDownloadLacks) {
  const fs::path folder = snapshot(kCommit);
  branch("main", kCommit);
  fs::remove(folder / "model-00002-of-00002.safetensors");
  EXPECT_THAT(error("org/Some.Model-1"),
              AllOf(HasSubstr("its download is not complete; missing in"),
                    HasSubstr(": model-00002-of-00002.safetensors."),
                    EndsWith("To complete it: hf download org/Some.Model-1")));
  fs::remove(folder / "model-00001-of-00002.safetensors");
  fs::remove(repository() / "blobs" / "config.json");  // its link dangles now
  EXPECT_THAT(error("org/Some.Model-1"), HasSubstr("config.json, *.safetensors"));
}

TEST_F(HubCache, RefusesWhatIsNeitherFolderNorId) {
  for (const char* model :
       {"", "model", "a/b/c", "../x", "org/..", "org/.x", "org/x@", "org/x@../y", "org/x@a//b",
        "org/x@-f", "/etc/nowhere", "a b/c", "org/x;rm"})
    EXPECT_THAT(error(model), HasSubstr("not a Hub id (ORG/NAME")) << model;
}

class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = getenv(name)) old_ = old;
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~Environment() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST_F(HubCache, LooksWhereTheHubsToolsKeepTheirs) {
  const Environment home("HOME", "/h"), cache("XDG_CACHE_HOME", nullptr),
      hf_home("HF_HOME", nullptr), hub("HF_HUB_CACHE", nullptr);
  EXPECT_EQ(hub_cache_folder(), "/h/.cache/huggingface/hub");
  const Environment set_cache("XDG_CACHE_HOME", "/x");
  EXPECT_EQ(hub_cache_folder(), "/x/huggingface/hub");
  const Environment set_home("HF_HOME", "/f");
  EXPECT_EQ(hub_cache_folder(), "/f/hub");
  const Environment set_hub("HF_HUB_CACHE", "/c");
  EXPECT_EQ(hub_cache_folder(), "/c");
}

}  // namespace
}  // namespace bascule
