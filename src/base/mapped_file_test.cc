#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/temp_folder.h"

namespace bascule {
namespace {

using testing::HasSubstr;

TEST(MappedFile, ShowsTheBytesOfAFileAndFollowsLinks) {
  const TempFolder folder;
  const auto path = folder.write("a", "hello");
  std::filesystem::create_symlink(path, folder.path() / "link");
  auto file = MappedFile::open(folder.path() / "link");
  ASSERT_TRUE(file.ok()) << file.status().message();
  const MappedFile moved = std::move(file).value();
  ASSERT_EQ(moved.bytes().size(), 5u);
  EXPECT_EQ(static_cast<char>(moved.bytes()[4]), 'o');
  for (const Access a : {Access::kSequential, Access::kRandom, Access::kWillNeed, Access::kDontNeed,
                         Access::kNormal})
    moved.advise(a, 1, 1000);
  EXPECT_EQ(static_cast<char>(moved.bytes()[0]), 'h');
}

TEST(MappedFile, OpensAnEmptyFile) {
  const TempFolder folder;
  const auto file = MappedFile::open(folder.write("empty", ""));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFile, RefusesWhatIsNoRegularFile) {
  const TempFolder folder;
  const auto absent = MappedFile::open(folder.path() / "absent");
  EXPECT_EQ(absent.status().code(), Code::kNotFound);
  EXPECT_THAT(absent.status().message(), HasSubstr("absent: cannot be opened: No such file"));
  EXPECT_THAT(MappedFile::open(folder.path()).status().message(), HasSubstr("not a regular file"));
  // Without care, opening a pipe that nobody writes to waits for ever.
  ASSERT_EQ(mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(MappedFile::open(folder.path() / "pipe").status().message(),
              HasSubstr("not a regular file"));
}

void read_after_shrinking() {
  const TempFolder folder;
  const auto size = static_cast<size_t>(4 * sysconf(_SC_PAGESIZE));
  const auto path = folder.write("model.safetensors", std::string(size, 'x'));
  const auto other = MappedFile::open(folder.write("other", "y"));
  const auto file = MappedFile::open(path);
  if (truncate(path.c_str(), 10) != 0) return;
  volatile char read = static_cast<char>(file->bytes()[size - 1]);
  (void)read;
}

TEST(MappedFileDeathTest, SaysWhichFileShrankAndStops) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(read_after_shrinking(), testing::ExitedWithCode(74),
              "model.safetensors shrank from [0-9]+ to 10 bytes while it was in use");
}

TEST(MappedFileDeathTest, LeavesOtherBusErrorsToWhoeverHandledThem) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto raise_elsewhere = [] {
    signal(SIGBUS, [](int) { _exit(5); });
    const TempFolder folder;
    const auto file = MappedFile::open(folder.write("a", "x"));
    raise(SIGBUS);
  };
  EXPECT_EXIT(raise_elsewhere(), testing::ExitedWithCode(5), "");
}

}  // namespace
}  // namespace bascule
