#include "base/options.h"

#include <gtest/gtest.h>

#include <fstream>

namespace bascule {
namespace {

const std::vector<std::string> kCommands = {"run", "plan", "inspect"};

Result<CommandLine> parse(std::vector<std::string> arguments,
                          std::map<std::string, std::string> environment = {}) {
  return parse_command_line(arguments, environment, kCommands);
}

std::string refusal(std::vector<std::string> arguments,
                    std::map<std::string, std::string> environment = {}) {
  const auto result = parse(std::move(arguments), std::move(environment));
  return result.ok() ? "accepted" : result.status().message();
}

std::string write_file(const std::string& text) {
  const std::string path = testing::TempDir() + "/options.toml";
  std::ofstream(path) << text;
  return path;
}

TEST(Options, FlagWinsOverEnvironmentOverFileOverModelOverBuiltIn) {
  const std::string file = write_file("tp = 2\ntemperature = 0.25\nmax-tokens = 5\n");
  struct Case {
    std::vector<std::string> flags;
    std::map<std::string, std::string> environment;
    bool with_file, with_model;
    double temperature;
    std::string origin;
  };
  const Case cases[] = {
      {{"--temperature", "0.5"}, {{"BASCULE_TEMPERATURE", "0.75"}}, true, true, 0.5, "flag"},
      {{}, {{"BASCULE_TEMPERATURE", "0.75"}}, true, true, 0.75, "environment BASCULE_TEMPERATURE"},
      {{}, {}, true, true, 0.25, file + ":2"},
      {{}, {}, false, true, 0.625, "generation_config.json"},
      {{}, {}, false, false, 1, "built-in"},
  };
  for (const Case& c : cases) {
    std::vector<std::string> arguments = {"run"};
    arguments.insert(arguments.end(), c.flags.begin(), c.flags.end());
    if (c.with_file) arguments.insert(arguments.end(), {"--config", file});
    CommandLine line = parse(arguments, c.environment).value();
    if (c.with_model) {
      ASSERT_TRUE(line.options.set_model("temperature", "0.625", "generation_config.json").ok());
    }
    EXPECT_EQ(line.options.number("temperature"), c.temperature);
    EXPECT_EQ(line.options.value("temperature").origin, c.origin);
  }
}

TEST(Options, PositionalsListsAndAliases) {
  const CommandLine line = parse({"run", "a/b", "hello", "--stop", "x", "--stop", "y",
                                  "--tensor-parallel-size", "2", "--ignore-eos", "--max-tokens=7"})
                               .value();
  EXPECT_EQ(line.command, "run");
  EXPECT_EQ(line.positionals, (std::vector<std::string>{"a/b", "hello"}));
  EXPECT_EQ(line.options.list("stop"), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(line.options.integer("tp"), 2);
  EXPECT_TRUE(line.options.flag("ignore-eos"));
  EXPECT_EQ(line.options.integer("max-tokens"), 7);
  EXPECT_FALSE(line.options.has("seed"));
}

TEST(Options, HelpAndVersionAreSeenAnywhere) {
  EXPECT_TRUE(parse({"--help"})->wants_help);
  EXPECT_TRUE(parse({"run", "--help"})->wants_help);
  EXPECT_EQ(parse({"run", "--help"})->command, "run");
  EXPECT_TRUE(parse({"--version"})->wants_version);
  EXPECT_EQ(parse({})->command, "");
}

TEST(Options, RefusalsSayWhatWouldDo) {
  EXPECT_EQ(refusal({"run", "--tmperature", "1"}),
            "there is no option --tmperature; is it --temperature?");
  EXPECT_EQ(refusal({"run", "--temperature", "warm"}),
            "flag: --temperature is \"warm\"; a number from 0 to 100 is wanted");
  EXPECT_EQ(refusal({"run", "--temperature", "nan"}),
            "flag: --temperature is \"nan\"; a number from 0 to 100 is wanted");
  EXPECT_EQ(refusal({"run", "--max-tokens", "0"}),
            "flag: --max-tokens is \"0\"; a whole number of at least 1 is wanted");
  EXPECT_EQ(refusal({"run", "--kernels", "quick"}),
            "flag: --kernels is \"quick\"; one of reference, fast, auto is wanted");
  EXPECT_EQ(refusal({"run"}, {{"BASCULE_TP", "two"}}),
            "environment BASCULE_TP: --tp is \"two\"; a whole number from 1 to 64 is wanted");
  const std::string file = write_file("\nkernls = \"fast\"\n");
  EXPECT_EQ(refusal({"run", "--config", file}),
            file + ":2: there is no option \"kernls\"; is it \"kernels\"?");
  EXPECT_NE(refusal({"run", "--config", write_file("a = = 1\n")}).find("options.toml:1"),
            std::string::npos);
  EXPECT_NE(refusal({"run", "--config", "/no/such/file"}).find("/no/such/file"), std::string::npos);
  EXPECT_NE(refusal({"plan", "--temperature", "1"}), "accepted");  // an option of run alone
}

TEST(Options, AnUnknownVariableIsSaidNotTaken) {
  const CommandLine line = parse({"run"}, {{"BASCULE_TEMPRATURE", "1"}, {"PATH", "/bin"}}).value();
  ASSERT_EQ(line.options.warnings().size(), 1u);
  EXPECT_EQ(line.options.warnings()[0],
            "environment: BASCULE_TEMPRATURE is no option and has no effect; is it "
            "BASCULE_TEMPERATURE?");
}

TEST(Options, FilesTakeListsAndFlags) {
  const std::string file = write_file("stop = [\"a\", \"b\"]\nignore-eos = true\n");
  const CommandLine line = parse({"run", "--config", file}).value();
  EXPECT_EQ(line.options.list("stop"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(line.options.flag("ignore-eos"));
  EXPECT_NE(refusal({"run", "--config", write_file("seed = [1, 2]\n")}).find("which takes one"),
            std::string::npos);
}

TEST(ParseIds, TakesCommasAndSpaces) {
  EXPECT_EQ(*parse_ids("5,6, 7\n8"), (std::vector<int32_t>{5, 6, 7, 8}));
  EXPECT_EQ(parse_ids("5,x,7").status().message(), "\"x\" is no token id");
  EXPECT_FALSE(parse_ids("99999999999").ok());
}

// Each row is whole: help, a value name where it takes one, a built-in value that it accepts.
TEST(OptionTable, IsConsistent) {
  for (const OptionRow& row : option_rows()) {
    EXPECT_FALSE(row.help.empty()) << row.name;
    EXPECT_EQ(row.value_name.empty(), row.kind == OptionKind::kFlag) << row.name;
    EXPECT_EQ(find_option(row.name), &row) << "named twice: " << row.name;
    if (!row.built_in.empty()) {
      Options options;
      EXPECT_TRUE(options.set_flag(row.name, {std::string(row.built_in)}).ok()) << row.name;
    }
  }
}

}  // namespace
}  // namespace bascule
