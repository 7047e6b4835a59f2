#include "apps/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "apps/interrupt.h"
#include "support/temp_folder.h"

namespace bascule {
namespace {

using testing::HasSubstr;

const std::string kTiny = std::string(BASCULE_TEST_DATA) + "/golden/glm-moe-dsa-tiny";

Options parse(std::vector<std::string> arguments) {
  const std::string commands[] = {"run"};
  arguments.insert(arguments.begin(), {"run", "--threads", "1", "--quiet"});
  return parse_command_line(arguments, {}, commands).value().options;
}

TEST(Session, CtrlCWhileLoadingStopsIt) {
  const Interrupt interrupt;
  raise(SIGINT);
  const auto session = Session::open(kTiny, parse({"--prompt-ids", "5"}));
  EXPECT_EQ(session.status().code(), Code::kCancelled);
}

TEST(Session, CtrlCStopsOneAnswerAndTheNextIsWhole) {
  const Interrupt interrupt;
  const auto session =
      Session::open(kTiny, parse({"--prompt-ids", "5", "--max-tokens", "4", "--ignore-eos"}))
          .value();
  raise(SIGINT);
  testing::internal::CaptureStdout();
  EXPECT_EQ(session->answer_ids({5, 6, 7}).code(), Code::kCancelled);
  Interrupt::forget();
  EXPECT_TRUE(session->answer_ids({5, 6, 7}).ok());
  testing::internal::GetCapturedStdout();
}

TEST(Session, TextNeedsATokenizer) {
  const Interrupt interrupt;
  EXPECT_THAT(Session::open(kTiny, parse({})).status().message(),
              HasSubstr("text needs a tokenizer; --prompt-ids needs none: "));
  EXPECT_THAT(Session::open(kTiny, parse({"--prompt-ids", "5", "--stop", "x"})).status().message(),
              HasSubstr("--stop needs a tokenizer; --stop-token-ids needs none: "));
}

TEST(Session, ADumpThatCannotBeWrittenIsRefusedBeforeAnythingRuns) {
  const Interrupt interrupt;
  const auto refusal = [](std::vector<std::string> arguments) {
    return Session::open("/nowhere", parse(std::move(arguments))).status().message();
  };
  EXPECT_THAT(refusal({"--dump", "/nonexistent/x"}), HasSubstr("--dump: /nonexistent/x.partial-"));
  EXPECT_EQ(refusal({"--dump", "/dev/full"}),
            "--dump: /dev/full: is no regular file, so it is not replaced");
  const TempFolder folder;
  const std::string file = (folder.path() / "x").string();
  EXPECT_EQ(refusal({"--dump", file, "--n", "2"}), "--dump records one answer; leave --n at 1");
  EXPECT_THAT(refusal({"--dump", file}), HasSubstr("/nowhere"));  // the dump is fine
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace bascule
