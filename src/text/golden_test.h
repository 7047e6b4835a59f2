// What tests/tokenizer/make_tokenizer.py wrote, for the tests beside this file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace bascule {

struct GoldenRow {
  enum Kind { kEncode, kDecode, kRepeat };
  Kind kind;
  std::string text;
  std::vector<int32_t> ids;
  std::vector<int32_t> ids_as_text;  // no added token matched
  std::string skipped;               // decoded without special tokens
  size_t n_ids = 0;                  // of kRepeat, instead of the ids
  uint64_t ids_fnv = 0;
};

// `kind` is "glm", "fallback" or "words".
std::string read_golden_tokenizer(const std::string& kind);
std::unique_ptr<Tokenizer> load_golden_tokenizer(const std::string& kind);
std::vector<GoldenRow> load_golden_rows(const std::string& kind);

// The token of one byte, in either manner of spelling it.
int32_t golden_byte_token(const Tokenizer& tokenizer, uint8_t byte);

}  // namespace bascule
