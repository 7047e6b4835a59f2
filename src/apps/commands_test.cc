#include "apps/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace bascule {
namespace {

using testing::HasSubstr;

const Command& command(const std::string& name) {
  for (const Command& c : commands())
    if (c.name == name) return c;
  ADD_FAILURE() << name;
  return commands()[0];
}

TEST(Help, OfACommandHasExamplesAndItsOptionsAlone) {
  const std::string run = help_text(command("run"));
  EXPECT_THAT(run, HasSubstr("Examples:\n  bascule run \"Tom"));
  EXPECT_THAT(run, HasSubstr("\n  --temperature T "));
  EXPECT_THAT(run, HasSubstr("f32|bf16|auto [auto]"));
  EXPECT_EQ(help_text(command("completion")).find("--temperature"), std::string::npos);
  EXPECT_EQ(run.find("--explain"), std::string::npos);
}

TEST(Help, FitsATerminal) {
  for (const Command& c : commands()) {
    std::istringstream lines(help_text(c));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

// Every option that a command shows is one that its text or the table explains; every option of the
// table belongs to a command.
TEST(Help, NoOptionIsHomeless) {
  for (const OptionRow& row : option_rows()) {
    bool is_used = false;
    for (const Command& c : commands()) is_used |= applies(row, c.name);
    EXPECT_TRUE(is_used) << row.name;
  }
}

TEST(Completion, KnowsCommandsOptionsAndValues) {
  for (const char* shell : {"bash", "zsh"}) {
    const std::string script = completion_script(shell).value();
    EXPECT_THAT(script, HasSubstr("run serve plan inspect config completion"));
    EXPECT_THAT(script, HasSubstr("--kernels) COMPREPLY=($(compgen -W \"reference fast auto\""));
  }
  const std::string fish = completion_script("fish").value();
  EXPECT_THAT(fish,
              HasSubstr("'__fish_seen_subcommand_from run' -l kernels -x -a 'reference fast"));
  EXPECT_THAT(fish, HasSubstr("the indexer\\'s k_norm"));  // quoted
  EXPECT_EQ(completion_script("tcsh").status().message(), "shell \"tcsh\": bash, zsh or fish");
}

}  // namespace
}  // namespace bascule
