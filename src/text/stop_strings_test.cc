#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace bascule {
namespace {

StopStrings compile(const std::vector<std::string>& stops) {
  return StopStrings::compile(stops).value();
}

struct Outcome {
  std::string text;
  int32_t stop;
  bool operator==(const Outcome&) const = default;
};

void PrintTo(const Outcome& o, std::ostream* out) { *out << '"' << o.text << "\" " << o.stop; }

Outcome run(const StopStrings& stops, const std::vector<std::string>& pieces,
            StopText stop_text = StopText::kCut) {
  StopMatcher matcher(stops, stop_text);
  std::string text;
  for (const std::string& piece : pieces) matcher.push(piece, text);
  matcher.finish(text);
  return {text, matcher.stop()};
}

std::vector<std::string> bytes_of(const std::string& text) {
  std::vector<std::string> bytes;
  for (const char c : text) bytes.emplace_back(1, c);
  return bytes;
}

// A stop string that lies across tokens is found, and its first part is never given out.
// https://github.com/vllm-project/vllm/issues/3574
// https://github.com/SharpAI/SwiftLM/issues/126
// https://github.com/mzau/mlx-knife/issues/68
TEST(StopStrings, FindsAStopAcrossPiecesWithoutLeakingItsStart) {
  const std::vector<std::string> pieces = {"Seven", " gr", "ey", " her", "ons", " wade"};
  EXPECT_EQ(run(compile({"y her"}), pieces), (Outcome{"Seven gre", 0}));
  EXPECT_EQ(run(compile({"gr", "grey"}), pieces), (Outcome{"Seven ", 0}));
  EXPECT_EQ(run(compile({"wade!"}), pieces), (Outcome{"Seven grey herons wade", -1}));
  EXPECT_EQ(run(compile({"grey h", "grey herd", "grew", "green"}), pieces), (Outcome{"Seven ", 0}));
  EXPECT_EQ(run(compile({"\xF0\x9F\x99\x82"}), {"a", "\xF0\x9F\x99\x82", "b"}), (Outcome{"a", 0}));
}

TEST(StopStrings, KeepsTheStopOnRequest) {
  EXPECT_EQ(run(compile({"STOP"}), {"a ST", "OP b"}, StopText::kKeep), (Outcome{"a STOP", 0}));
}

TEST(StopStrings, TheEarliestEndWinsAndThenTheLongest) {
  EXPECT_EQ(run(compile({"abcde", "bcd"}), {"xabcde"}), (Outcome{"xa", 1}));
  EXPECT_EQ(run(compile({"d", "bcd", "cd"}), {"abcd"}), (Outcome{"a", 1}));
  EXPECT_EQ(run(compile({"ab", "ab"}), {"ab"}), (Outcome{"", 0}));
}

TEST(StopStrings, GivesNothingAfterAStop) {
  const StopStrings stops = compile({"."});
  StopMatcher matcher(stops);
  std::string text;
  matcher.push("a.b", text);
  matcher.push("c", text);
  matcher.finish(text);
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(text, "a");
}

TEST(StopStrings, WithoutStopsEverythingPassesAtOnce) {
  const StopStrings stops;
  EXPECT_TRUE(stops.empty());
  StopMatcher matcher(stops);
  std::string text;
  matcher.push("abc", text);
  EXPECT_EQ(text, "abc");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopStrings, RefusesAnEmptyStop) {
  const auto refused = StopStrings::compile(std::vector<std::string>{"a", ""});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
}

// The longest end of `text` that begins some stop string.
size_t length_to_hold(const std::string& text, const std::vector<std::string>& stops) {
  size_t longest = 0;
  for (const std::string& stop : stops) {
    for (size_t n = 1; n < stop.size() && n <= text.size(); ++n) {
      if (text.ends_with(stop.substr(0, n))) longest = std::max(longest, n);
    }
  }
  return longest;
}

Outcome search_plainly(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    const std::string head = text.substr(0, end);
    int32_t longest = -1;
    for (size_t i = 0; i < stops.size(); ++i) {
      if (head.ends_with(stops[i]) && (longest < 0 || stops[i].size() > stops[longest].size()))
        longest = static_cast<int32_t>(i);
    }
    if (longest >= 0) return {head.substr(0, end - stops[longest].size()), longest};
  }
  return {text, -1};
}

TEST(StopStrings, AgreesWithAPlainSearchAndHoldsBackNoMoreThanItMust) {
  std::mt19937 random(7);
  auto word = [&](size_t max_length) {
    std::string w(1 + random() % max_length, ' ');
    for (char& c : w) c = static_cast<char>('a' + random() % 2);
    return w;
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops(1 + random() % 4);
    for (std::string& stop : stops) stop = word(9);
    const StopStrings compiled = compile(stops);
    StopMatcher matcher(compiled);
    std::string all, given;
    for (int piece = 0; piece < 12 && !matcher.stopped(); ++piece) {
      const std::string text = word(4);
      all += text;
      matcher.push(text, given);
      if (!matcher.stopped()) {
        ASSERT_EQ(given, all.substr(0, all.size() - length_to_hold(all, stops)));
      }
    }
    matcher.finish(given);
    ASSERT_EQ((Outcome{given, matcher.stop()}), search_plainly(all, stops));
  }
}

// Quadratic work would be 10^12 steps here, far past the test's time limit.
TEST(StopStrings, AStopOfAMegabyteCostsNoMoreThanItsLength) {
  const std::string stop = std::string(1'000'000, 'a') + "b";
  const StopStrings stops = compile({stop});
  const std::string text(2'000'000, 'a');
  EXPECT_EQ(run(stops, bytes_of(text)), (Outcome{text, -1}));
  EXPECT_EQ(run(stops, bytes_of(text + "b")), (Outcome{std::string(1'000'000, 'a'), 0}));
}

TEST(StopStrings, AMillionStopsCostNoMoreThanTheirBytes) {
  std::vector<std::string> many;
  for (int i = 0; i < 1'000'000; ++i) many.push_back("stop " + std::to_string(i) + ";");
  const StopStrings stops = compile(many);
  const std::string text(1'000'000, 's');
  EXPECT_EQ(run(stops, {text, "top 77", "7777;x"}), (Outcome{text.substr(1), 777777}));
}

}  // namespace
}  // namespace bascule
