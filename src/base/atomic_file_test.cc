#include "base/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/temp_folder.h"

namespace bascule {
namespace {

using testing::HasSubstr;

size_t n_files(const TempFolder& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder.path()),
                                           std::filesystem::directory_iterator()));
}

TEST(AtomicFile, AppearsWholeUnderItsName) {
  const TempFolder folder;
  const auto path = folder.write("a", "old");
  auto file = AtomicFile::create(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE(file->write_at(4, "5678", 4).ok());
  ASSERT_TRUE(file->write_at(0, "1234", 4).ok());
  EXPECT_EQ(file_bytes(path), "old");
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(file_bytes(path), "12345678");
  EXPECT_EQ(n_files(folder), 1u);
}

TEST(AtomicFile, LeavesNothingBehindWithoutCommit) {
  const TempFolder folder;
  const auto path = folder.write("a", "old");
  {
    auto file = AtomicFile::create(path);
    ASSERT_TRUE(file->write_at(0, "new", 3).ok());
  }
  EXPECT_EQ(file_bytes(path), "old");
  EXPECT_EQ(n_files(folder), 1u);
}

TEST(AtomicFile, SaysThatTheDiskIsFull) {
  const int full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  const Status status = write_all_at(full, 0, "12345678", 8, "out.safetensors");
  close(full);
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "out.safetensors: writing 8 bytes at byte 0: No space left on device");
}

// The same from the kernel's limit on a file's size, through the whole of AtomicFile: pwrite
// first writes what fits, then fails.
TEST(AtomicFile, KeepsTheOldFileWhenTheNewOneDoesNotFit) {
  const TempFolder folder;
  const auto path = folder.write("a", "old");
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  {
    auto file = AtomicFile::create(path);
    const std::string data(1000, 'x');
    const Status status = file->write_at(0, data.data(), 1000);
    EXPECT_EQ(status.code(), Code::kResourceExhausted);
    EXPECT_THAT(status.message(), HasSubstr("writing 900 bytes at byte 100: File too large"));
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(file_bytes(path), "old");
  EXPECT_EQ(n_files(folder), 1u);
}

TEST(AtomicFile, ReplacesNoDeviceOrFolder) {
  EXPECT_EQ(AtomicFile::create("/dev/null").status().message(),
            "/dev/null: is no regular file, so it is not replaced");
  const TempFolder folder;
  EXPECT_EQ(AtomicFile::create(folder.path()).status().code(), Code::kInvalidArgument);
}

TEST(AtomicFile, NamesAFolderThatIsNotThere) {
  const auto file = AtomicFile::create("/nonexistent/folder/a");
  EXPECT_EQ(file.status().code(), Code::kNotFound);
  EXPECT_THAT(file.status().message(), HasSubstr("/nonexistent/folder/a.partial-"));
}

}  // namespace
}  // namespace bascule
