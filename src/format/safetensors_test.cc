#include "format/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>

#include "support/temp_folder.h"

namespace bascule {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// The bytes of a file with this header, as it stands, and so many data bytes.
std::string file_of(std::string_view header, size_t n_data_bytes) {
  const uint64_t length = header.size();
  std::string file(8, '\0');
  memcpy(file.data(), &length, 8);
  return file + std::string(header) + std::string(n_data_bytes, '\1');
}

// Padded to a multiple of 8, so that data begin aligned.
std::string aligned_file_of(std::string header, size_t n_data_bytes) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return file_of(header, n_data_bytes);
}

Result<SafetensorsHeader> parse(std::string_view file) {
  // A copy of exactly this length: under AddressSanitizer a read past its end shows.
  const std::vector<char> exact(file.begin(), file.end());
  return parse_safetensors(std::as_bytes(std::span(exact)), "m.safetensors");
}

std::string error_of(std::string_view file) {
  const auto header = parse(file);
  EXPECT_FALSE(header.ok());
  if (header.ok()) return "";
  EXPECT_THAT(header.status().message(), testing::StartsWith("m.safetensors: "));
  return header.status().message();
}

constexpr const char* kTwoTensors =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[16,28]},)"
    R"("a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})";

TEST(Safetensors, ListsTensorsInOrderOfTheirBytes) {
  const auto header = parse(aligned_file_of(kTwoTensors, 28));
  ASSERT_TRUE(header.ok()) << header.status().message();
  ASSERT_EQ(header->entries.size(), 2u);
  EXPECT_EQ(header->entries[0].name, "a");
  EXPECT_EQ(header->entries[1].name, "b");
  EXPECT_EQ(header->entries[1].dtype, Dtype::kBf16);
  EXPECT_THAT(header->entries[1].shape, ElementsAre(2, 3));
  EXPECT_EQ(header->entries[1].offset, header->entries[0].offset + 16);
  EXPECT_EQ(header->entries[1].size_bytes, 12);
  EXPECT_EQ(header->metadata.at("format"), "pt");
}

TEST(Safetensors, AcceptsScalarsEmptyTensorsAndNoTensors) {
  EXPECT_TRUE(parse(aligned_file_of("{}", 0)).ok());
  const auto header = parse(aligned_file_of(
      R"({"x":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("none":{"dtype":"I64","shape":[9223372036854775807,0,5],"data_offsets":[0,0]}})",
      4));
  ASSERT_TRUE(header.ok()) << header.status().message();
  EXPECT_EQ(header->entries[0].name, "none");
  EXPECT_EQ(header->entries[1].size_bytes, 4);
}

// https://github.com/lyogavin/airllm/issues/137
// https://github.com/Comfy-Org/ComfyUI/issues/15602
TEST(Safetensors, RefusesTruncatedBodiesAndTrailingBytes) {
  EXPECT_THAT(error_of(aligned_file_of(kTwoTensors, 27)),
              HasSubstr("describes 28 data bytes; the file has 27"));
  EXPECT_THAT(error_of(aligned_file_of(kTwoTensors, 29)), HasSubstr("1 bytes at its end"));
  EXPECT_THAT(error_of(aligned_file_of(kTwoTensors, 28 + 4096)),
              HasSubstr("4096 bytes at its end"));
}

TEST(Safetensors, RefusesImpossibleHeaderLengths) {
  EXPECT_THAT(error_of(""), HasSubstr("0 bytes: too short"));
  EXPECT_THAT(error_of("1234567"), HasSubstr("7 bytes: too short"));
  EXPECT_THAT(error_of(std::string("\0\0\0\0\0\0\0\x80", 8) + "{}"),
              HasSubstr("a header of 9223372036854775808 bytes"));
  EXPECT_THAT(error_of(std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8) + "{}"),
              HasSubstr("a header of 18446744073709551615 bytes"));
  EXPECT_THAT(error_of(std::string("\3\0\0\0\0\0\0\0", 8) + "{}"), HasSubstr("truncated"));
  EXPECT_THAT(error_of(std::string(16, '\0')), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(error_of("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
              HasSubstr("git lfs pull"));
}

TEST(Safetensors, RefusesOffsetsThatOverlapOrLeaveHoles) {
  const auto two = [](const char* first, const char* second) {
    return aligned_file_of(std::string(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)") +
                               first + R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" +
                               second + "}}",
                           8);
  };
  EXPECT_TRUE(parse(two("[0,4]", "[4,8]")).ok());
  EXPECT_THAT(error_of(two("[0,4]", "[3,7]")),
              AllOf(HasSubstr("\"b\""), HasSubstr("they overlap")));
  EXPECT_THAT(error_of(two("[0,4]", "[0,4]")), HasSubstr("they overlap"));
  EXPECT_THAT(error_of(two("[0,4]", "[5,9]")), HasSubstr("describes 9 data bytes"));
  EXPECT_THAT(error_of(two("[1,5]", "[4,8]")), HasSubstr("bytes between them belong to no tensor"));
  EXPECT_THAT(error_of(two("[4,0]", "[4,8]")), HasSubstr("not within the file's 8 data bytes"));
  EXPECT_THAT(error_of(two("[0,4]", "[4]")), HasSubstr("not a pair"));
  EXPECT_THAT(error_of(two("[0,4]", "[4,8,9]")), HasSubstr("a list of 3"));
  EXPECT_THAT(error_of(two("[-4,0]", "[4,8]")), HasSubstr("negative number -4"));
  EXPECT_THAT(error_of(two("[0,4]", "[4,9223372036854775808]")), HasSubstr("below 2^63"));
  EXPECT_THAT(error_of(two("[0,4]", "[4.0,8]")), HasSubstr("the number 4.0"));
}

TEST(Safetensors, RefusesShapesThatDoNotFitTheirBytes) {
  const auto one = [](const char* shape, const char* dtype = "U8") {
    return aligned_file_of(std::string(R"({"a":{"dtype":")") + dtype + R"(","shape":)" + shape +
                               R"(,"data_offsets":[0,8]}})",
                           8);
  };
  EXPECT_TRUE(parse(one("[2,4]")).ok());
  EXPECT_THAT(error_of(one("[3,3]")),
              HasSubstr("U8 [3, 3] takes 9 bytes; data_offsets [0, 8] give 8"));
  EXPECT_THAT(error_of(one("[-2,-4]")), HasSubstr("negative number -2"));
  // 2^32 * 2^32 * 8 is 8 once cut to 64 bits, were the product not watched.
  EXPECT_THAT(error_of(one("[4294967296,4294967296,8]")), HasSubstr("past 2^63 bytes"));
  EXPECT_THAT(error_of(one("[9223372036854775807]", "F32")), HasSubstr("past 2^63 bytes"));
  EXPECT_THAT(error_of(one("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,8]")), HasSubstr("a list of 17"));
  EXPECT_THAT(error_of(one("8")), HasSubstr("shape is the number 8"));
  EXPECT_THAT(error_of(one("[\"8\"]")), HasSubstr("the string \"8\""));
  EXPECT_THAT(error_of(one("[8]", "F99")), HasSubstr("unknown element type \"F99\""));
}

TEST(Safetensors, RefusesMalformedHeaders) {
  EXPECT_THAT(error_of(file_of("{\"a\":", 0)), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of(file_of("{\"a\":7}", 0)), HasSubstr("tensor \"a\": is the number 7"));
  EXPECT_THAT(error_of(file_of(R"({"a":{"dtype":"U8","shape":[0]}})", 0)),
              HasSubstr("data_offsets is missing"));
  EXPECT_THAT(
      error_of(file_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}})", 0)),
      HasSubstr("unknown key \"x\""));
  EXPECT_THAT(error_of(file_of(R"({"__metadata__":{"a":1}})", 0)),
              HasSubstr("__metadata__: \"a\" is the number 1"));
  EXPECT_THAT(error_of(file_of(R"({"__metadata__":[]})", 0)), HasSubstr("an object is wanted"));
  EXPECT_THAT(error_of(aligned_file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                       R"("a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                                       8)),
              HasSubstr("the key \"a\" stands twice"));
  EXPECT_THAT(error_of(file_of("{\"a\":" + std::string(1'000'000, '['), 0)),
              HasSubstr("nested deeper than 4"));
}

TEST(Safetensors, RefusesElementsThatAreMisaligned) {
  const std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  for (size_t spaces = 0; spaces < 4; ++spaces) {
    const std::string padded = header + std::string(spaces, ' ');
    const bool is_aligned = (8 + padded.size()) % 4 == 0;
    EXPECT_EQ(parse(file_of(padded, 4)).ok(), is_aligned);
    if (is_aligned) continue;
    EXPECT_THAT(error_of(file_of(padded, 4)),
                AllOf(HasSubstr("tensor \"a\": misaligned"), HasSubstr("safetensors library")));
  }
}

TEST(Safetensors, RefusesAFileCutAtAnyByte) {
  const std::string file = aligned_file_of(kTwoTensors, 28);
  ASSERT_TRUE(parse(file).ok());
  for (size_t n = 0; n < file.size(); ++n) EXPECT_FALSE(parse(file.substr(0, n)).ok()) << n;
}

TEST(Safetensors, SurvivesEveryByteOfTheHeaderChanged) {
  const std::string file = aligned_file_of(kTwoTensors, 28);
  for (size_t i = 0; i < file.size() - 28; ++i)
    for (const char c : {'\0', '\xff', '"', '{', '9', '-'}) {
      std::string changed = file;
      changed[i] = c;
      const auto header = parse(changed);  // an error or a sound reading, and no crash
      if (!header.ok()) continue;
      for (const SafetensorsEntry& e : header->entries)
        EXPECT_LE(e.offset + e.size_bytes, static_cast<int64_t>(file.size()));
    }
}

TEST(SafetensorsWriter, WritesWhatTheReaderReads) {
  const TempFolder folder;
  const auto path = folder.path() / "out.safetensors";
  const std::vector<uint8_t> bytes = {1, 2, 3};
  const std::vector<float> floats = {1.5f, -2.5f};
  const std::vector<TensorToWrite> tensors = {
      {"odd \"name\"\n", Dtype::kU8, {3}, bytes.data()},  // its 3 bytes must not shift the floats
      {"floats", Dtype::kF32, {2, 1}, floats.data()},
      {"empty", Dtype::kF32, {0, 7}, nullptr},
  };
  const Status written = write_safetensors(path, tensors, {{"made_by", "test"}});
  ASSERT_TRUE(written.ok()) << written.message();
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->header.metadata.at("made_by"), "test");
  const SafetensorsEntry* read = file->find("floats");
  ASSERT_NE(read, nullptr);
  EXPECT_THAT(read->shape, ElementsAre(2, 1));
  EXPECT_EQ(memcmp(file->data(*read), floats.data(), 8), 0);
  EXPECT_EQ(memcmp(file->data(*file->find("odd \"name\"\n")), bytes.data(), 3), 0);
  EXPECT_EQ(file->find("empty")->size_bytes, 0);
  EXPECT_EQ(file->find("absent"), nullptr);
}

TEST(SafetensorsWriter, TakesPiecesOfTensorsInAnyOrder) {
  const TempFolder folder;
  const auto path = folder.path() / "out.safetensors";
  const std::vector<TensorToWrite> declarations = {{"a", Dtype::kI16, {4}},
                                                   {"b", Dtype::kI16, {2}}};
  auto writer = SafetensorsWriter::create(path, declarations);
  ASSERT_TRUE(writer.ok());
  const std::vector<int16_t> a = {1, 2, 3, 4}, b = {5, 6};
  ASSERT_TRUE(writer->append(0, a.data(), 2).ok());
  ASSERT_TRUE(writer->append(1, b.data(), 4).ok());
  ASSERT_TRUE(writer->append(0, a.data() + 1, 6).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(writer->finish().ok());
  const auto file = SafetensorsFile::open(path);
  EXPECT_EQ(memcmp(file->data(*file->find("a")), a.data(), 8), 0);
  EXPECT_EQ(memcmp(file->data(*file->find("b")), b.data(), 4), 0);
}

TEST(SafetensorsWriter, RefusesNamesThatAreNotUtf8OrStandTwice) {
  const TempFolder folder;
  const uint8_t byte = 0;
  const std::vector<TensorToWrite> bad = {{"\xff", Dtype::kU8, {1}, &byte}};
  EXPECT_THAT(write_safetensors(folder.path() / "a", bad).message(), HasSubstr("UTF-8"));
  const std::vector<TensorToWrite> twice = {{"x", Dtype::kU8, {1}, &byte},
                                            {"x", Dtype::kU8, {1}, &byte}};
  EXPECT_THAT(write_safetensors(folder.path() / "a", twice).message(), HasSubstr("\"x\" twice"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace bascule
