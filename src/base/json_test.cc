#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace bascule {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view text, JsonLimits limits = {}) {
  const auto json = parse_json(text, "file.json", limits);
  EXPECT_FALSE(json.ok()) << text;
  return json.ok() ? "" : json.status().message();
}

TEST(Json, KeepsTheOrderOfKeysAndTheFormOfNumbers) {
  const auto json = parse_json(R"({"z": 1, "a": [1.0, -0.12345, 1e6, 18446744073709551615]})", "x");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->dump(), R"({"z":1,"a":[1.0,-0.12345,1000000.0,18446744073709551615]})");
}

TEST(Json, TellsWhereAndWhyItIsMalformed) {
  EXPECT_THAT(error_of("{\"a\": }"), HasSubstr("file.json: not valid JSON at byte 7"));
  EXPECT_THAT(error_of(""), HasSubstr("unexpected end of input"));
  EXPECT_THAT(error_of("{} {}"), HasSubstr("file.json: not valid JSON"));
  EXPECT_THAT(error_of("{\"a\": NaN}"), HasSubstr("invalid literal"));
  EXPECT_THAT(error_of("\"\xff\""), HasSubstr("ill-formed UTF-8"));
  EXPECT_THAT(error_of("[1e999]"), HasSubstr("number overflow"));
}

TEST(Json, ReadsNoTextThatANulByteCutsShort) {
  EXPECT_THAT(error_of(std::string_view("{}\0 {", 5)), HasSubstr("at byte 2: a NUL byte"));
  EXPECT_TRUE(parse_json(R"("\u0000")", "x").ok());
}

TEST(Json, RefusesAKeyThatAnObjectHoldsTwice) {
  EXPECT_THAT(error_of(R"({"a": {"b": 1, "b": 2}})"), HasSubstr("the key \"b\" stands twice"));
  EXPECT_TRUE(parse_json(R"({"a": {"b": 1}, "b": {"b": 2}})", "x").ok());
}

TEST(Json, SurvivesAMillionBrackets) {
  const std::string arrays(1'000'000, '[');
  EXPECT_THAT(error_of(arrays), HasSubstr("nested deeper than 64 levels"));
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(error_of(objects), HasSubstr("nested deeper than 64 levels"));
}

TEST(Json, HoldsToItsLimits) {
  EXPECT_TRUE(parse_json("[[1]]", "x", {.max_depth = 2}).ok());
  EXPECT_THAT(error_of("[[[1]]]", {.max_depth = 2}), HasSubstr("deeper than 2"));
  EXPECT_THAT(error_of("[1,2,3]", {.max_values = 3}), HasSubstr("more than 3 values"));
  EXPECT_THAT(error_of("[[],[],[]]", {.max_values = 3}), HasSubstr("more than 3 values"));
  EXPECT_THAT(error_of("[1,2,3]", {.max_bytes = 6}), HasSubstr("7 bytes of JSON"));
}

TEST(Json, ReadsAnObjectOfManyKeysInLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i)
    text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":" + std::to_string(i);
  text += "}";
  const auto start = std::chrono::steady_clock::now();
  const auto json = parse_json(text, "x");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->size(), 200'000u);
  EXPECT_LT(took.count(), 10);  // 0.1 s here; a look-up a key would take minutes
}

TEST(Json, NamesTheFieldWhatItIsAndWhatIsWanted) {
  const Json json = *parse_json(
      R"({"s": "78", "x": 1.5, "n": 7, "big": 9223372036854775808, "o": {}, "l": [1, 2], "z": null})",
      "x");
  EXPECT_EQ(as_int(json["s"], "s").status().message(),
            "s is the string \"78\"; a whole number is wanted");
  EXPECT_EQ(as_int(json["x"], "x").status().message(),
            "x is the number 1.5; a whole number is wanted");
  EXPECT_THAT(as_int(json["big"], "big").status().message(), HasSubstr("below 2^63"));
  EXPECT_EQ(as_double(json["o"], "o").status().message(), "o is an object; a number is wanted");
  EXPECT_EQ(as_bool(json["n"], "n").status().message(),
            "n is the number 7; true or false is wanted");
  EXPECT_EQ(as_string(json["l"], "l").status().message(), "l is a list of 2; a string is wanted");
  EXPECT_EQ(*as_int(json["n"], "n"), 7);
  EXPECT_EQ(*as_double(json["n"], "n"), 7.0);
  EXPECT_EQ(find_field(json, "z"), nullptr);
  EXPECT_EQ(find_field(json, "absent"), nullptr);
  EXPECT_NE(find_field(json, "o"), nullptr);
}

}  // namespace
}  // namespace bascule
