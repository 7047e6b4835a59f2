// An input that begins with '{' is a tokenizer.json and, after a NUL byte, a text for it. Any other
// is a text for small tokenizers of every kind, and the ids and stop strings that its bytes spell.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/check.h"
#include "text/incremental_decoder.h"
#include "text/stop_strings.h"
#include "text/tokenizer.h"

namespace bascule {
namespace {

constexpr std::string_view kGlmPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::string escaped(std::string_view text) {
  std::string json;
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    json += c;
  }
  return json;
}

std::string utf8_below_800(int c) {
  if (c < 0x80) return {static_cast<char>(c)};
  return {static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3F))};
}

// The character by which byte-level vocabularies spell a byte: printable Latin-1 by itself, the
// others by the code points from 256 on.
std::string spelling(int byte) {
  static const std::array<std::string, 256> all = [] {
    std::array<std::string, 256> made;
    int next = 256;
    for (int b = 0; b < 256; ++b) {
      const bool itself = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xFF && b != 0xAD);
      made[b] = utf8_below_800(itself ? b : next++);
    }
    return made;
  }();
  return all[byte];
}

std::string added(int id, std::string_view content, bool special) {
  return "{\"id\":" + std::to_string(id) + ",\"content\":\"" + std::string(content) +
         "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false," +
         "\"special\":" + (special ? "true}" : "false}");
}

// The 256 bytes, a few merges, and added tokens that text may hold.
std::string byte_level_json() {
  std::string vocab;
  for (int b = 0; b < 256; ++b) {
    vocab += "\"" + escaped(spelling(b)) + "\":" + std::to_string(b) + ",";
  }
  const std::string split = "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" + escaped(kGlmPattern) +
                            "\"},\"behavior\":\"Isolated\",\"invert\":false}";
  const std::string bytes =
      "\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":false,\"use_regex\":"
      "false";
  return "{\"added_tokens\":[" + added(261, "<|user|>", true) + "," + added(262, "<t>", false) +
         "," + added(263, "  ", false) + "],\"pre_tokenizer\":{\"type\":\"Sequence\"," +
         "\"pretokenizers\":[" + split + ",{" + bytes + "}]},\"decoder\":{" + bytes +
         "},\"model\":{\"type\":\"BPE\",\"vocab\":{" + vocab +
         "\"aa\":256,\"aaa\":257,\"ab\":258,\"Ġa\":259,\"ĠĠ\":260}," +
         "\"merges\":[[\"a\",\"a\"],[\"aa\",\"a\"],[\"a\",\"b\"],[\"Ġ\",\"a\"],[\"Ġ\",\"Ġ\"]]}}";
}

std::string byte_fallback_json() {
  constexpr std::string_view hex = "0123456789ABCDEF";
  std::string vocab = "\"<unk>\":0";
  for (int b = 0; b < 256; ++b) {
    vocab += std::string(",\"<0x") + hex[b >> 4] + hex[b & 15] + ">\":" + std::to_string(b + 1);
  }
  return "{\"added_tokens\":[" + added(0, "<unk>", true) +
         "],\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\","
         "\"prepend\":\"▁\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"▁"
         "\"}]},\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":"
         "{\"String\":\"▁\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"
         "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]},\"model\":{\"type\":"
         "\"BPE\",\"unk_token\":\"<unk>\",\"byte_fallback\":true,\"vocab\":{" +
         vocab + ",\"▁\":257,\"a\":258,\"▁a\":259},\"merges\":[[\"▁\",\"a\"]]}}";
}

// Both roads give the same ids; as text, none of them is a control token.
void check_encoding(const Tokenizer& tokenizer, std::string_view text) {
  for (const ControlTokens control : {ControlTokens::kAreText, ControlTokens::kAreMatched}) {
    const auto fast = tokenizer.encode(text, {.control = control});
    const auto plain = tokenizer.encode(text, {.control = control, .plain_road = true});
    if (!fast.ok() || !plain.ok()) continue;
    BASCULE_CHECK(*fast == *plain);
    for (const int32_t id : *fast) {
      const auto token = tokenizer.token_of(id);
      BASCULE_CHECK(token);
      BASCULE_CHECK(control == ControlTokens::kAreMatched || !token->is_control);
    }
  }
}

void check_round_trip(const Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.encode(text);
  BASCULE_CHECK_EQ(ids.ok(), is_utf8(text));
  if (ids.ok()) BASCULE_CHECK_EQ(tokenizer.decode(*ids), text);
}

// Whatever the ids, each piece of text is whole.
void check_decoding(const Tokenizer& tokenizer, std::string_view bytes) {
  IncrementalDecoder decoder(tokenizer);
  std::vector<int32_t> ids;
  std::string text;
  for (const char byte : bytes) {
    ids.push_back(static_cast<uint8_t>(byte) + (ids.size() % 3 == 2 ? 8 : 0));
    std::string delta;
    decoder.push(ids.back(), delta);
    BASCULE_CHECK(is_utf8(delta));
    text += delta;
  }
  decoder.finish(text);
  BASCULE_CHECK_EQ(text, tokenizer.decode(ids));
}

// However a text is cut, the same is given out. Words of the first line are the stop strings.
void check_stop_strings(std::string_view input) {
  const size_t line_end = std::min(input.find('\n'), input.size());
  std::vector<std::string> words(1);
  for (const char c : input.substr(0, line_end)) {
    if (c == ' ') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  const auto stops = StopStrings::compile(words);
  if (!stops.ok()) return;
  const std::string_view text = input.substr(line_end);
  StopMatcher whole(*stops), cut(*stops);
  std::string from_whole, from_cut;
  whole.push(text, from_whole);
  whole.finish(from_whole);
  for (size_t i = 0; i < text.size(); ++i) cut.push(text.substr(i, 1), from_cut);
  cut.finish(from_cut);
  BASCULE_CHECK_EQ(from_whole, from_cut);
  BASCULE_CHECK_EQ(whole.stop(), cut.stop());
  for (const std::string& word : words) {
    BASCULE_CHECK(from_whole.find(word) == std::string::npos);
  }
}

void check_file(std::string_view input) {
  const size_t json_end = std::min(input.find('\0'), input.size());
  const auto tokenizer = Tokenizer::from_json(input.substr(0, json_end));
  if (!tokenizer.ok()) return;
  const std::string_view text = input.substr(std::min(json_end + 1, input.size()));
  check_encoding(**tokenizer, text);
  check_decoding(**tokenizer, text);
}

}  // namespace
}  // namespace bascule

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bascule;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.starts_with('{')) {
    // A thread of its own: the library keeps words of every tokenizer that a thread has used.
    std::thread(check_file, input).join();
    return 0;
  }
  static const auto byte_level = Tokenizer::from_json(byte_level_json()).value();
  static const auto byte_fallback = Tokenizer::from_json(byte_fallback_json()).value();
  for (const Tokenizer* tokenizer : {byte_level.get(), byte_fallback.get()}) {
    check_encoding(*tokenizer, input);
    check_decoding(*tokenizer, input);
  }
  check_round_trip(*byte_level, input);
  check_stop_strings(input);
  return 0;
}
