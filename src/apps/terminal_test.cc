#include "apps/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "apps/interrupt.h"
#include "support/temp_folder.h"

namespace bascule {
namespace {

// What a person or a pipe sends.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_), 0); }
  ~Pipe() {
    close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
  }
  void send(std::string_view text) {
    EXPECT_EQ(write(ends_[1], text.data(), text.size()), ssize_t(text.size()));
  }
  void end() { close(std::exchange(ends_[1], -1)); }
  int reader() const { return ends_[0]; }

 private:
  int ends_[2];
};

TEST(Input, GivesLinesThenNothing) {
  Pipe pipe;
  pipe.send("one\n\ntwo");
  pipe.end();
  Input input(pipe.reader(), "pipe");
  EXPECT_EQ(*input.line(), "one");
  EXPECT_EQ(*input.line(), "");
  EXPECT_EQ(*input.line(), "two");
  EXPECT_EQ(*input.line(), std::nullopt);
}

TEST(Input, AllIsBounded) {
  Pipe pipe;
  pipe.send("12345");
  pipe.end();
  EXPECT_EQ(Input(pipe.reader(), "pipe").all(4).status().message(), "pipe: longer than 4 bytes");
  Pipe other;
  other.send("12345");
  other.end();
  EXPECT_EQ(*Input(other.reader(), "pipe").all(5), "12345");
}

TEST(Input, CtrlCEndsTheWait) {
  const Interrupt interrupt;
  Pipe pipe;
  raise(SIGINT);
  EXPECT_EQ(Input(pipe.reader(), "pipe").line().status().code(), Code::kCancelled);
  Interrupt::forget();
  pipe.send("on\n");
  EXPECT_EQ(*Input(pipe.reader(), "pipe").line(), "on");
}

TEST(ReadFile, NamesWhatCannotBeRead) {
  EXPECT_EQ(read_file("/no/such", 9).status().message(), "/no/such: No such file or directory");
  EXPECT_EQ(read_file("/", 9).status().message(), "/: Is a directory");
  const TempFolder folder;
  EXPECT_EQ(*read_file(folder.write("a", "text").string(), 9), "text");
}

}  // namespace
}  // namespace bascule
