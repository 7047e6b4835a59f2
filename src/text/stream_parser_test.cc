#include "text/stream_parser.h"

#include <gtest/gtest.h>

#include <ostream>
#include <random>

namespace bascule {

void PrintTo(const OutputPart& part, std::ostream* out) {
  constexpr const char* kKinds[] = {"reasoning", "content", "call"};
  *out << kKinds[static_cast<int>(part.kind)] << '(' << part.name << " '" << part.text << "')";
}

namespace {

using Parts = std::vector<OutputPart>;
using Begin = StreamParser::Begin;
using End = StreamParser::End;

const ToolSchemas& tools() {
  static const ToolSchemas schemas = ToolSchemas::from_json(R"([
    {"type": "function", "function": {"name": "now"}},
    {"name": "read", "input_schema": {"properties": {"path": {"type": "string"}}}},
    {"name": "read_file", "parameters": {"properties": {"path": {"type": "string"}}}},
    {"name": "read_file_lines", "parameters": {"properties": {}}},
    {"type": "function", "function": {"name": "typed", "parameters": {"type": "object",
      "properties": {"n": {"type": "integer"}, "r": {"type": "number"}, "b": {"type": "boolean"},
        "a": {"type": "array"}, "o": {"type": "object"}, "s": {"type": "string"},
        "u": {"type": ["string", "null"]}, "e": {"enum": ["1", "2"]}, "c": {"const": 3},
        "any": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "ref": {"$ref": "#/$defs/word"}, "ring": {"$ref": "#/$defs/ring"}},
      "$defs": {"word": {"type": "string"}, "ring": {"$ref": "#/$defs/ring"}}}}}])")
                                         .value();
  return schemas;
}

OutputPart reasoning(std::string text) { return {OutputPart::Kind::kReasoning, std::move(text)}; }
OutputPart content(std::string text) { return {OutputPart::Kind::kContent, std::move(text)}; }
OutputPart call(std::string name, std::string arguments) {
  return {OutputPart::Kind::kToolCall, std::move(arguments), std::move(name)};
}

void push(StreamParser& parser, std::string_view text, Parts& parts) {
  Parts delta;
  parser.push(text, delta);
  for (const OutputPart& part : delta) {
    if (part.kind == OutputPart::Kind::kToolCall) {
      parts.push_back(part);
    } else {
      append_text(part.kind, part.text, parts);
    }
  }
}

Parts parse(std::string_view text, Begin begin = Begin::kInContent, End end = End::kTurnEnded,
            const ToolSchemas& schemas = tools()) {
  StreamParser parser(find_dialect("glm_moe_dsa"), schemas, begin);
  Parts parts;
  push(parser, text, parts);
  parser.finish(end, parts);
  return parts;
}

// Cut before each of `cuts`, which ascend.
Parts parse_cut(std::string_view text, const std::vector<size_t>& cuts, Begin begin, End end) {
  StreamParser parser(find_dialect("glm_moe_dsa"), tools(), begin);
  Parts parts;
  size_t from = 0;
  for (const size_t cut : cuts) {
    push(parser, text.substr(from, cut - from), parts);
    from = cut;
  }
  push(parser, text.substr(from), parts);
  parser.finish(end, parts);
  return parts;
}

std::string argument(const std::string& key, const std::string& value) {
  return "<arg_key>" + key + "</arg_key><arg_value>" + value + "</arg_value>";
}

std::string typed(const std::string& key, const std::string& value) {
  const Parts parts = parse("<tool_call>typed" + argument(key, value) + "</tool_call>");
  if (parts.size() != 1 || parts[0].name != "typed") return "no call";
  const std::string head = "{\"" + key + "\": ";
  EXPECT_TRUE(parts[0].text.starts_with(head) && parts[0].text.ends_with("}")) << parts[0].text;
  return parts[0].text.substr(head.size(), parts[0].text.size() - head.size() - 1);
}

TEST(StreamParser, SplitsReasoningContentAndCalls) {
  EXPECT_EQ(parse("I think</think>The answer", Begin::kInReasoning),
            (Parts{reasoning("I think"), content("The answer")}));
  EXPECT_EQ(parse("\n<think>I think</think>\nThe answer\n"),
            (Parts{reasoning("I think"), content("The answer\n")}));
  EXPECT_EQ(parse("a < b <thin <think>"), (Parts{content("a < b <thin <think>")}));
  EXPECT_EQ(
      parse("Reading.\n<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a.cc</arg_value>\n"
            "</tool_call>\n<tool_call>now</tool_call>\nDone. "),
      (Parts{content("Reading."), call("read", R"({"path": "a.cc"})"), call("now", "{}"),
             content("Done. ")}));
}

// Without an entry of the table, no character means anything.
TEST(StreamParser, AnUnknownFamilyWritesContentOnly) {
  StreamParser parser(find_dialect("gpt2"), tools(), Begin::kInContent);
  Parts parts;
  parser.push(" <think>a</think><tool_call>now</tool_call> ", parts);
  parser.finish(End::kTurnEnded, parts);
  EXPECT_EQ(parts, (Parts{content(" <think>a</think><tool_call>now</tool_call> ")}));
}

// A family is data: its tags are all that the parser knows of it.
TEST(StreamParser, AnotherFamilyIsAnotherRowOfTags) {
  constexpr Dialect kOther = {.think_begin = "[T]",
                              .think_end = "[/T]",
                              .call_begin = "[C]",
                              .call_end = "[/C]",
                              .key_begin = "[K]",
                              .key_end = "[/K]",
                              .value_begin = "[V]",
                              .value_end = "[/V]"};
  StreamParser parser(&kOther, tools(), Begin::kInContent);
  Parts parts;
  parser.push("[T]hm[/T]<think>[C]read[K]path[/K][V][1][/V][/C]", parts);
  parser.finish(End::kTurnEnded, parts);
  EXPECT_EQ(parts,
            (Parts{reasoning("hm"), content("<think>"), call("read", R"({"path": "[1]"})")}));
}

// github.com/antirez/ds4/issues/569, github.com/antirez/ds4/pull/582
TEST(StreamParser, TypesArgumentsByTheToolsSchema) {
  EXPECT_EQ(typed("n", "9007199254740993"), "9007199254740993");
  EXPECT_EQ(typed("r", "1e3"), "1e3");
  EXPECT_EQ(typed("r", "1.0"), "1.0");
  EXPECT_EQ(typed("b", "true"), "true");
  EXPECT_EQ(typed("a", "[]"), "[]");
  EXPECT_EQ(typed("o", "{\"k\":1}"), "{\"k\":1}");
  EXPECT_EQ(typed("s", "001"), "\"001\"");
  EXPECT_EQ(typed("s", "true"), "\"true\"");
  EXPECT_EQ(typed("s", " \"a\"\\\n"), R"(" \"a\"\\\n")");
  EXPECT_EQ(typed("u", "null"), "null");
  EXPECT_EQ(typed("u", "5"), "\"5\"");
  EXPECT_EQ(typed("e", "1"), "\"1\"");
  EXPECT_EQ(typed("c", "3"), "3");
  EXPECT_EQ(typed("any", "3"), "3");
  EXPECT_EQ(typed("any", "[3]"), "\"[3]\"");
  EXPECT_EQ(typed("ref", "3"), "\"3\"");
  EXPECT_EQ(typed("ring", "3"), "3");
  for (const std::string no_json : {"0x1F", "001", "NaN", "Infinity", "45kg", "-", "1.", ""}) {
    EXPECT_EQ(typed("n", no_json), "\"" + no_json + "\"");
    EXPECT_EQ(typed("x", no_json), "\"" + no_json + "\"");
  }
  EXPECT_EQ(typed("x", "{\"é\": [1, {\"🙂\": null}]}"), "{\"é\": [1, {\"🙂\": null}]}");
}

// github.com/vllm-project/vllm/issues/44326
TEST(StreamParser, ACallWithoutArgumentsIsACall) {
  EXPECT_EQ(parse("<tool_call>now</tool_call>"), (Parts{call("now", "{}")}));
  EXPECT_EQ(parse("<tool_call>now</tool_call>text"), (Parts{call("now", "{}"), content("text")}));
  EXPECT_EQ(parse("<tool_call>now</tool_call><tool_call> now\n</tool_call>"),
            (Parts{call("now", "{}"), call("now", "{}")}));
}

// github.com/vllm-project/vllm/issues/39757: "read" was sent for "read_file".
TEST(StreamParser, ANameIsGivenWholeWhereverItIsCut) {
  for (const std::string name : {"read", "read_file", "read_file_lines"}) {
    const std::string text = "<tool_call>" + name + argument("path", "a") + "</tool_call>";
    for (size_t cut = 0; cut <= text.size(); ++cut) {
      EXPECT_EQ(parse_cut(text, {cut}, Begin::kInContent, End::kTurnEnded),
                (Parts{call(name, R"({"path": "a"})")}));
    }
  }
}

// github.com/vllm-project/vllm/pull/45915, github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1592
TEST(StreamParser, OnlyAWellFormedCallOfADeclaredToolEndsReasoning) {
  EXPECT_EQ(parse("think… <tool_call>now</tool_call>", Begin::kInReasoning),
            (Parts{reasoning("think… "), call("now", "{}")}));
  EXPECT_EQ(parse("I could write <tool_call>foo</think>ok", Begin::kInReasoning),
            (Parts{reasoning("I could write <tool_call>foo"), content("ok")}));
  EXPECT_EQ(parse("<tool_call>now</think><tool_call>now</tool_call>", Begin::kInReasoning),
            (Parts{reasoning("<tool_call>now"), call("now", "{}")}));
  EXPECT_EQ(parse("<tool_call>now</tool_call>", Begin::kInContent, End::kTurnEnded, ToolSchemas()),
            (Parts{content("<tool_call>now</tool_call>")}));
}

// github.com/sgl-project/sglang/issues/37645: an answer was filed as reasoning.
TEST(StreamParser, ATurnThatEndsWithoutEndOfThinkingIsAnAnswer) {
  EXPECT_EQ(parse("Paris.", Begin::kInReasoning), (Parts{reasoning("Paris."), content("Paris.")}));
  EXPECT_EQ(parse("Paris", Begin::kInReasoning, End::kCut), (Parts{reasoning("Paris")}));
  EXPECT_EQ(parse("</think>", Begin::kInReasoning), Parts{});
  EXPECT_EQ(parse("Paris.", Begin::kInContent), (Parts{content("Paris.")}));
}

// Never {} for arguments that were not understood, and no key that holds markup.
// github.com/vllm-project/vllm/pull/49249, github.com/vllm-project/vllm/pull/54971
TEST(StreamParser, AMalformedCallStaysTextToTheLastCharacter) {
  for (const std::string text : {
           "<tool_call>read<arg_key>path</arg_key></tool_call>",
           "<tool_call>read<arg_key>path</arg_key></arg_key><arg_value>a</arg_value></tool_call>",
           "<tool_call>readpath</arg_key><arg_value>a</arg_value></tool_call>",
           "<tool_call>read<arg_value>a</arg_value></tool_call>",
           "<tool_call>read<arg_key>path<arg_value>a</arg_value></tool_call>",
           "<tool_call>read<arg_key></arg_key><arg_value>a</arg_value></tool_call>",
           "<tool_call>read<arg_key>path</arg_key><arg_value>a</tool_call>",
           "<tool_call>read<arg_key>path</arg_key><arg_value>a",
           "<tool_call>read<arg_key>p</arg_key><arg_value>a</arg_value> so </tool_call>",
           "<tool_call>read<arg_key>p</arg_key><arg_value>a</arg_value><arg_key>p</arg_key>"
           "<arg_value>a</arg_value></tool_call>",
           "<tool_call></tool_call>",
           "<tool_call>write</tool_call>",
           "<tool_call>read file</tool_call>",
           "read</tool_call>",
       }) {
    EXPECT_EQ(parse(text), (Parts{content(text)}));
    EXPECT_EQ(parse("a \n" + text + "</think>", Begin::kInReasoning, End::kCut)[0],
              reasoning("a \n" + text));
  }
}

// What stands in the argument of a damaged call was not meant as a call.
TEST(StreamParser, ALostEndOfAValueSwallowsNoCall) {
  const std::string text =
      "<tool_call>read<arg_key>path</arg_key><arg_value>a</tool_call>"
      "<tool_call>read" +
      argument("path", "b") + "</tool_call>";
  EXPECT_EQ(parse(text), (Parts{content(text)}));
  EXPECT_EQ(parse("<tool_call>nope<tool_call>now</tool_call>"),
            (Parts{content("<tool_call>nope"), call("now", "{}")}));
}

// A call that the token limit cut is no call. github.com/vllm-project/vllm/issues/53269
TEST(StreamParser, ATruncatedCallIsNoCall) {
  const std::string text = "<tool_call>read" + argument("path", "a") + "</tool_call>";
  for (size_t size = 0; size < text.size(); ++size) {
    const std::string cut = text.substr(0, size);
    EXPECT_EQ(parse(cut, Begin::kInContent, End::kCut),
              cut.empty() ? Parts{} : Parts{content(cut)});
  }
}

// Tag, word and character soup in which all kinds of parts, whole and damaged, occur.
std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> words = {
      "<think>",
      "</think>",
      "<tool_call>",
      "</tool_call>",
      "<arg_key>",
      "</arg_key>",
      "<arg_value>",
      "</arg_value>",
      "now",
      "read",
      "_file",
      "path",
      " ",
      "\n",
      "<",
      "é",
      "🙂",
      "{\"a\": [1]}",
      "7",
      "text",
      "<tool_call>now</tool_call>",
      "<tool_call>read<arg_key>path</arg_key>\n<arg_value>",
      "<tool_call>typed<arg_key>n</arg_key><arg_value>12</arg_value>\n<arg_key>u</arg_key>"
      "<arg_value>\"ü\"</arg_value></tool_call>"};
  std::string text;
  for (size_t n = random() % 24; n > 0; --n) text += words[random() % words.size()];
  return text;
}

// github.com/vllm-project/vllm/pull/42006, github.com/sgl-project/sglang/pull/36688
TEST(StreamParser, AnyCutsGiveTheSameParts) {
  std::mt19937 random(20261204);
  constexpr int kTexts = 10'000;
  constexpr int kSplits = 12;
  int n_calls = 0;
  for (int i = 0; i < kTexts; ++i) {
    const std::string text = random_text(random);
    const Begin begin = random() % 2 ? Begin::kInReasoning : Begin::kInContent;
    const End end = random() % 2 ? End::kTurnEnded : End::kCut;
    const Parts whole = parse(text, begin, end);
    for (const OutputPart& part : whole) n_calls += part.kind == OutputPart::Kind::kToolCall;
    for (int split = 0; split < kSplits; ++split) {
      std::vector<size_t> cuts;
      const size_t one_in = split == 0 ? 1 : 1 + random() % 20;
      for (size_t at = 1; at < text.size(); ++at) {
        if (random() % one_in == 0) cuts.push_back(at);
      }
      ASSERT_EQ(parse_cut(text, cuts, begin, end), whole) << text;
    }
  }
  EXPECT_GT(n_calls, kTexts / 4);
}

// Every part of the text is in the output, markup of calls and white space beside it aside.
TEST(StreamParser, WithoutCallsAndThinkingTheContentIsTheText) {
  std::mt19937 random(4);
  for (int i = 0; i < 10'000; ++i) {
    const std::string text = "." + random_text(random);
    const Parts whole = parse(text, Begin::kInContent, End::kCut, ToolSchemas());
    ASSERT_EQ(whole, (Parts{content(text)}));
  }
}

TEST(StreamParser, AMegabyteOfBrokenMarkupTakesLinearTime) {
  for (const std::string unit :
       {"<tool_call>", "<tool_call>now", "<", " ",
        "<tool_call>read<arg_key>path</arg_key><arg_value>", "<tool_call>now ", "</arg_value>"}) {
    std::string text;
    while (text.size() < 1 << 20) text += unit;
    const Parts parts = parse(text, Begin::kInReasoning, End::kCut);
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_EQ(parts[0].text, text);
  }
}

TEST(Dialects, APromptThatEndsInThinkBeginOpensThinking) {
  const Dialect& glm = *find_dialect("glm_moe_dsa");
  EXPECT_TRUE(opens_thinking(glm, "<|assistant|><think>"));
  EXPECT_TRUE(opens_thinking(glm, "<|assistant|>\n<think>\n"));
  EXPECT_FALSE(opens_thinking(glm, "<|assistant|><think></think>"));
  EXPECT_FALSE(opens_thinking(glm, ""));
}

TEST(ToolSchemas, SaysWhatIsWrongWithAList) {
  EXPECT_EQ(ToolSchemas::from_json("{}").status().message(),
            "tools is an object; a list is wanted");
  EXPECT_EQ(ToolSchemas::from_json("[{\"name\": \"a\"}, {\"function\": {}}]").status().message(),
            "tools[1] has no name");
}

}  // namespace
}  // namespace bascule
