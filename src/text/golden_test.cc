#include "text/golden_test.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/json.h"

namespace bascule {
namespace {

std::string read(const std::string& name) {
  std::ifstream file(std::string(BASCULE_TEST_DATA) + "/tokenizer/" + name, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(file.good()) << name;
  return text.str();
}

GoldenRow row_of(const Json& row) {
  if (row.contains("unit")) {
    GoldenRow golden{.kind = GoldenRow::kRepeat, .n_ids = row["n_ids"]};
    const std::string unit = row["unit"];
    for (int i = row["times"]; i > 0; --i) golden.text += unit;
    golden.ids_fnv = std::stoull(row["fnv"].get<std::string>(), nullptr, 16);
    return golden;
  }
  const bool decodes = row.contains("decode");
  GoldenRow golden{.kind = decodes ? GoldenRow::kDecode : GoldenRow::kEncode,
                   .text = row["text"],
                   .ids = row[decodes ? "decode" : "ids"]};
  golden.ids_as_text = row.value("as_text", golden.ids);
  golden.skipped = row.value("skipped", golden.text);
  return golden;
}

}  // namespace

std::string read_golden_tokenizer(const std::string& kind) { return read(kind + ".json"); }

std::unique_ptr<Tokenizer> load_golden_tokenizer(const std::string& kind) {
  return Tokenizer::from_json(read_golden_tokenizer(kind)).value();
}

std::vector<GoldenRow> load_golden_rows(const std::string& kind) {
  std::vector<GoldenRow> rows;
  std::istringstream lines(read(kind + ".golden.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    rows.push_back(row_of(parse_json(line, kind).value()));
  }
  return rows;
}

int32_t golden_byte_token(const Tokenizer& tokenizer, uint8_t byte) {
  const std::string piece(1, static_cast<char>(byte));
  const bool has_runs = tokenizer.decoding().joining == Joining::kRuns;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const auto token = tokenizer.token_of(id);
    if (token && token->piece == piece && token->is_byte == has_runs) return id;
  }
  ADD_FAILURE() << "no token for byte " << int{byte};
  return -1;
}

}  // namespace bascule
