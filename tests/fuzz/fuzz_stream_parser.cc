// The first byte says where the parser begins, how the turn ends and how the text is cut; the rest
// is what the model wrote. Any cuts give the same parts, and every call's arguments are JSON.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "text/stream_parser.h"

namespace bascule {
namespace {

constexpr std::string_view kTools = R"([{"name": "now"}, {"name": "f", "parameters":
    {"properties": {"s": {"type": "string"}, "n": {"type": "integer"}}}}])";

std::vector<OutputPart> parse(std::string_view text, size_t piece, uint8_t how) {
  static const ToolSchemas tools = ToolSchemas::from_json(kTools).value();
  StreamParser parser(
      find_dialect("glm_moe_dsa"), tools,
      how & 1 ? StreamParser::Begin::kInReasoning : StreamParser::Begin::kInContent);
  std::vector<OutputPart> parts;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    parser.push(text.substr(0, piece), parts);
  }
  parser.finish(how & 2 ? StreamParser::End::kCut : StreamParser::End::kTurnEnded, parts);
  return parts;
}

}  // namespace
}  // namespace bascule

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bascule;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<OutputPart> whole = parse(text, size, data[0]);
  BASCULE_CHECK(whole == parse(text, 1, data[0]));
  BASCULE_CHECK(whole == parse(text, 2 + data[0] / 4, data[0]));
  for (const OutputPart& part : whole) {
    if (part.kind != OutputPart::Kind::kToolCall) continue;
    const auto arguments = parse_json(part.text, "arguments");
    BASCULE_CHECK(arguments.ok() && arguments->is_object());
  }
  return 0;
}
