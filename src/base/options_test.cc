#include "base/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_folder.h"

namespace bascule {
namespace {

using testing::HasSubstr;

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

// A file of options; tests that run beside this one have files of their own.
std::string write_file(const std::string& text) {
  static const TempFolder folder;
  return folder.write("options.toml", text).string();
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
      {{}, {}, true, true, 0.25, "file " + file + ":2"},
      {{}, {}, false, true, 0.625, "model generation_config.json"},
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
  EXPECT_EQ(refusal({"run", "--kv-cache-bytes", "many"}),
            "flag: --kv-cache-bytes is \"many\"; a size such as 4GiB or 500MB is wanted");
  EXPECT_EQ(refusal({"run", "--system=", "hi"}),
            "\"--system=\" lacks a value; an empty one is written --system \"\"");
  EXPECT_EQ(refusal({"run", "--seed"}), "--seed: 1 required TEXT missing");
  EXPECT_EQ(refusal({"run"}, {{"BASCULE_TP", "two"}}),
            "environment BASCULE_TP: --tp is \"two\"; a whole number from 1 to 64 is wanted");
  const std::string file = write_file("\nkernls = \"fast\"\n");
  EXPECT_EQ(refusal({"run", "--config", file}),
            "file " + file + ":2: there is no option \"kernls\"; is it \"kernels\"?");
  EXPECT_THAT(refusal({"run", "--config", write_file("a = = 1\n")}), HasSubstr("options.toml:1:"));
  EXPECT_EQ(refusal({"run", "--config", "/no/such/file"}),
            "--config /no/such/file: cannot be opened");
  EXPECT_THAT(refusal({"run", "--config", "/"}), HasSubstr("--config /: no readable file"));
  EXPECT_THAT(refusal({"run", "--config", write_file("help = true\n")}),
              HasSubstr("there is no option \"help\""));
  EXPECT_THAT(refusal({"run", "--config", write_file("config = 'x.toml'\n")}),
              HasSubstr("there is no option \"config\""));
  EXPECT_NE(refusal({"plan", "--temperature", "1"}), "accepted");  // an option of run alone
}

TEST(Options, AnUnknownVariableIsSaidNotTaken) {
  const CommandLine line = parse({"run"}, {{"BASCULE_TEMPRATURE", "1"}, {"PATH", "/bin"}}).value();
  ASSERT_EQ(line.options.warnings().size(), 1u);
  EXPECT_EQ(line.options.warnings()[0],
            "environment: BASCULE_TEMPRATURE is no option and has no effect; is it "
            "BASCULE_TEMPERATURE?");
}

// Found by fuzzing: an assertion of toml++ 3.3.0 ended the process.
TEST(Options, AMalformedDateIsAnErrorOfTheFile) {
  EXPECT_THAT(refusal({"run", "--config", write_file("a = 1979-05-27Tx2:00Z\n")}),
              HasSubstr("options.toml:1: Error while parsing"));
}

// Found by fuzzing: toml++ 3.3.0 looked for white space among letters and reached what it called
// unreachable.
TEST(Options, ALetterOutsideAStringIsAnErrorOfTheFile) {
  for (const char* toml : {"\u0299tp[", "temperature\u00e9 = 1\n", "temperature = \uff21\n"})
    EXPECT_THAT(refusal({"run", "--config", write_file(toml)}),
                HasSubstr("options.toml:1: Error while parsing"));
  EXPECT_EQ(refusal({"run", "--config", write_file("system = '\u0299\u00e9\uff21'\n")}),
            "accepted");
}

TEST(Options, WordsReachTheCommandAsTyped) {
  const auto words = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "run");
    return parse(arguments).value().positionals;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(words({"[a, b]"}), (Words{"[a, b]"}));
  EXPECT_EQ(words({"run", "plan"}), (Words{"run", "plan"}));  // names of commands are words here
  EXPECT_EQ(words({"--", "--temperature"}), (Words{"--temperature"}));
  EXPECT_EQ(words({""}), (Words{""}));
  EXPECT_EQ(words({"a\nb", "'c' \"d\""}), (Words{"a\nb", "'c' \"d\""}));
}

TEST(Options, ValuesReachTheOptionAsTyped) {
  const CommandLine line =
      parse({"run", "--stop", "[a,b]", "--stop", "", "--stop", "--x", "--system", "a=b",
             "--presence-penalty", "-1", "--logit-bias=5:-1"})
          .value();
  EXPECT_EQ(line.options.list("stop"), (std::vector<std::string>{"[a,b]", "", "--x"}));
  EXPECT_EQ(line.options.text("system"), "a=b");
  EXPECT_EQ(line.options.number("presence-penalty"), -1);
  EXPECT_EQ(line.options.text("logit-bias"), "5:-1");
}

TEST(Options, TheLastOfAFlagCounts) {
  EXPECT_EQ(parse({"run", "--seed", "1", "--seed", "2"})->options.integer("seed"), 2);
}

TEST(Options, TheEnvironmentMayNameTheFile) {
  const std::string file = write_file("seed = 5\n");
  const CommandLine line = parse({"run"}, {{"BASCULE_CONFIG", file}}).value();
  EXPECT_EQ(line.options.integer("seed"), 5);
  const CommandLine other = parse({"run"}, {{"BASCULE_HELP", "true"}}).value();
  EXPECT_FALSE(other.wants_help);
  EXPECT_EQ(other.options.warnings().size(), 1u);
}

TEST(Options, FilesTakeListsAndFlags) {
  const std::string file = write_file("stop = [\"a\", \"b\"]\nignore-eos = true\n");
  const CommandLine line = parse({"run", "--config", file}).value();
  EXPECT_EQ(line.options.list("stop"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(line.options.flag("ignore-eos"));
  EXPECT_THAT(refusal({"run", "--config", write_file("seed = [1, 2]\n")}),
              HasSubstr(":1: seed: a text, a number, true or false is wanted"));
  EXPECT_THAT(refusal({"run", "--config", write_file("[stop]\na = 1\n")}),
              HasSubstr(":1: stop: a text, a number, true or false is wanted"));
  EXPECT_THAT(refusal({"run", "--config", write_file("ignore-eos = 1\n")}),
              HasSubstr(":1: --ignore-eos is \"1\"; true or false is wanted"));
}

TEST(ParseBytes, KnowsUnits) {
  EXPECT_EQ(*parse_bytes("4GiB"), int64_t{4} << 30);
  EXPECT_EQ(*parse_bytes("1.5 GB"), 1500000000);
  EXPECT_EQ(*parse_bytes("77"), 77);
  for (const char* bad : {"", "GB", "-1", "4 gigs", "1e30TiB", "nan"})
    EXPECT_FALSE(parse_bytes(bad).ok()) << bad;
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
