#include "format/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/safetensors.h"
#include "support/temp_folder.h"

namespace bascule {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A file of one-byte tensors of these names, each one holding `value`.
void write_file(const std::filesystem::path& path, const std::vector<std::string>& names,
                uint8_t value = 1) {
  std::vector<TensorToWrite> tensors;
  for (const std::string& name : names) tensors.push_back({name, Dtype::kU8, {1}, &value});
  const Status written = write_safetensors(path, tensors);
  ASSERT_TRUE(written.ok()) << written.message();
}

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kIndexOfThree =
    R"({"weight_map": {"a": "model-00001-of-00003.safetensors",
                       "b": "model-00002-of-00003.safetensors",
                       "c": "model-00003-of-00003.safetensors"}})";

class CheckpointTest : public testing::Test {
 protected:
  void write_three() {
    write_file(path() / "model-00001-of-00003.safetensors", {"a"}, 10);
    write_file(path() / "model-00002-of-00003.safetensors", {"b"}, 20);
    write_file(path() / "model-00003-of-00003.safetensors", {"c"}, 30);
    folder_.write(kIndex, kIndexOfThree);
  }
  std::string error() {
    const auto checkpoint = Checkpoint::open(path());
    EXPECT_FALSE(checkpoint.ok());
    return checkpoint.ok() ? "" : checkpoint.status().message();
  }
  const std::filesystem::path& path() const { return folder_.path(); }

  TempFolder folder_;
};

TEST_F(CheckpointTest, ReadsShardsUnderAnIndex) {
  write_three();
  folder_.write("config.json", "{\"a\": 1}");
  const auto checkpoint = Checkpoint::open(path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const Checkpoint& c = **checkpoint;
  EXPECT_EQ(c.tensors().size(), 3u);
  const StoredTensor* b = c.find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(*static_cast<const uint8_t*>(b->data), 20);
  EXPECT_EQ(c.files()[b->file].filename(), "model-00002-of-00003.safetensors");
  EXPECT_EQ(c.find("d"), nullptr);
  EXPECT_THAT(c.notices(), IsEmpty());
  EXPECT_EQ(*c.read_text("config.json"), "{\"a\": 1}");
  EXPECT_EQ(c.read_text("tokenizer.json").status().code(), Code::kNotFound);
}

TEST_F(CheckpointTest, ReadsOneFileAndLeavesOthersAlone) {
  write_file(path() / "model.safetensors", {"a"});
  write_file(path() / "reference.safetensors", {"logits"});
  const auto checkpoint = Checkpoint::open(path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ((*checkpoint)->tensors().size(), 1u);
  write_file(path() / "model-00001-of-00001.safetensors", {"b"});
  EXPECT_EQ((*Checkpoint::open(path()))->tensors().size(), 1u);
}

TEST_F(CheckpointTest, ReadsShardsWithoutAnIndexByTheirNumbers) {
  write_three();
  std::filesystem::remove(path() / kIndex);
  EXPECT_EQ((*Checkpoint::open(path()))->tensors().size(), 3u);
  std::filesystem::remove(path() / "model-00002-of-00003.safetensors");
  EXPECT_THAT(error(), HasSubstr("1 of 3 weight files missing: model-00002-of-00003.safetensors"));
  write_file(path() / "model-00002-of-00004.safetensors", {"b"});
  EXPECT_THAT(error(), HasSubstr("shards of two saves"));
}

TEST_F(CheckpointTest, DoesNotGuessWhichOfTwoFilesIsTheModel) {
  write_file(path() / "first.safetensors", {"a"});
  EXPECT_TRUE(Checkpoint::open(path()).ok());
  write_file(path() / "second.safetensors", {"a"});
  EXPECT_THAT(error(), HasSubstr("2 *.safetensors files"));
}

// https://github.com/sgl-project/sglang/pull/32279
TEST_F(CheckpointTest, ListsEveryShardThatAnInterruptedDownloadLeftOut) {
  write_three();
  std::filesystem::remove(path() / "model-00001-of-00003.safetensors");
  std::filesystem::remove(path() / "model-00002-of-00003.safetensors");
  std::filesystem::create_symlink("../blobs/0a", path() / "model-00002-of-00003.safetensors");
  EXPECT_THAT(error(), AllOf(HasSubstr("2 of 3 weight files missing"),
                             HasSubstr("model-00001-of-00003.safetensors, "),
                             HasSubstr("model-00002-of-00003.safetensors (a link to ../blobs/0a, "
                                       "which does not exist)")));
  EXPECT_EQ(missing_weight_files(path())->size(), 2u);
}
TEST_F(CheckpointTest, NamesAShardOfNoBytes) {
  write_three();
  folder_.write("model-00002-of-00003.safetensors", "");
  EXPECT_THAT(error(), HasSubstr("model-00002-of-00003.safetensors: 0 bytes: too short"));
}

TEST_F(CheckpointTest, FollowsLinksToShards) {
  write_three();
  const auto shard = path() / "model-00002-of-00003.safetensors";
  std::filesystem::rename(shard, path() / "blob");
  std::filesystem::create_symlink("blob", shard);
  const auto checkpoint = Checkpoint::open(path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ(*static_cast<const uint8_t*>((*checkpoint)->find("b")->data), 20);
}

// https://github.com/NVIDIA/Model-Optimizer/pull/2427
TEST_F(CheckpointTest, CountsATensorThatTheIndexLeavesOutAndSaysSo) {
  write_three();
  write_file(path() / "model-00001-of-00003.safetensors", {"a", "mtp.eh_proj.weight"});
  const auto checkpoint = Checkpoint::open(path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_NE((*checkpoint)->find("mtp.eh_proj.weight"), nullptr);
  EXPECT_THAT((*checkpoint)->notices(),
              ElementsAre(HasSubstr("\"mtp.eh_proj.weight\" is in model-00001-of-00003.safetensors "
                                    "and not in model.safetensors.index.json")));
}

TEST_F(CheckpointTest, RefusesAnIndexThatDisagreesWithItsFiles) {
  write_three();
  write_file(path() / "model-00002-of-00003.safetensors", {"other"});
  EXPECT_THAT(error(), HasSubstr("tensor \"b\" should be in \"model-00002-of-00003.safetensors\", "
                                 "and is in no file"));
  write_file(path() / "model-00001-of-00003.safetensors", {"b"});
  write_file(path() / "model-00002-of-00003.safetensors", {"a"});
  EXPECT_THAT(error(), HasSubstr("tensor \"a\" should be in \"model-00001-of-00003.safetensors\", "
                                 "and is in \"model-00002-of-00003.safetensors\""));
}

TEST_F(CheckpointTest, RefusesATensorInTwoShards) {
  write_three();
  write_file(path() / "model-00003-of-00003.safetensors", {"a", "c"});
  EXPECT_THAT(error(),
              HasSubstr("tensor \"a\" is in two files, model-00001-of-00003.safetensors and "
                        "model-00003-of-00003.safetensors"));
}

TEST_F(CheckpointTest, RefusesAShardThatTheIndexDoesNotName) {
  write_three();
  folder_.write(kIndex, R"({"weight_map": {"a": "model-00001-of-00003.safetensors",
                                           "b": "model-00002-of-00003.safetensors"}})");
  EXPECT_THAT(error(),
              HasSubstr("the shard \"model-00003-of-00003.safetensors\" lies in the folder"));
}

TEST_F(CheckpointTest, MentionsFilesThatAreNotPartOfTheModel) {
  write_three();
  write_file(path() / "adapter.safetensors", {"x"});
  EXPECT_THAT((*Checkpoint::open(path()))->notices(),
              ElementsAre("not part of the model, not read: \"adapter.safetensors\""));
}

TEST_F(CheckpointTest, RefusesAMalformedIndex) {
  write_three();
  const auto error_with = [&](const char* index) {
    folder_.write(kIndex, index);
    return error();
  };
  EXPECT_THAT(error_with(""), HasSubstr("model.safetensors.index.json: not valid JSON"));
  EXPECT_THAT(error_with("[]"), HasSubstr("no \"weight_map\""));
  EXPECT_THAT(error_with(R"({"weight_map": []})"), HasSubstr("no \"weight_map\""));
  EXPECT_THAT(error_with(R"({"weight_map": {"a": 7}})"),
              HasSubstr("weight_map of \"a\" is the number 7; a string is wanted"));
  EXPECT_THAT(error_with(R"({"weight_map": {"a": "../model.safetensors"}})"),
              HasSubstr("is in \"../model.safetensors\", which is not a file name"));
  EXPECT_THAT(error_with(R"({"weight_map": {"a": "pytorch_model.bin"}})"),
              HasSubstr("only .safetensors files are read"));
  EXPECT_THAT(error_with(R"({"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}})"),
              HasSubstr("the key \"a\" stands twice"));
}

TEST_F(CheckpointTest, RefusesPicklesAndOtherFormats) {
  folder_.write("model.gguf", "GGUF");
  EXPECT_THAT(error(), HasSubstr("\"model.gguf\" is GGUF; only safetensors are read"));
  folder_.write("pytorch_model.bin", "PK");
  EXPECT_THAT(error(), AllOf(HasSubstr("pickles (\"pytorch_model.bin\")"), HasSubstr("run code"),
                             HasSubstr("save_pretrained")));
}

TEST_F(CheckpointTest, SaysWhenThereIsNoFolderOrNothingInIt) {
  EXPECT_THAT(error(), HasSubstr("no *.safetensors file in this folder"));
  EXPECT_THAT(Checkpoint::open(path() / "x").status().message(), HasSubstr("no such folder"));
  EXPECT_THAT(Checkpoint::open(folder_.write("file", "")).status().message(),
              HasSubstr("not a folder"));
}

}  // namespace
}  // namespace bascule
