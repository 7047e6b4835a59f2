// Tokens to text as they are generated. The pieces of text, put together, are what
// Tokenizer::decode gives for all tokens at once (which is this class, run to its end).
#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"
#include "text/utf8.h"

namespace bascule {

// One text; used by one thread at a time. The tokenizer must outlive it. Linear in time.
class IncrementalDecoder {
 public:
  explicit IncrementalDecoder(const Tokenizer& tokenizer,
                              SpecialTokens special = SpecialTokens::kKeep);

  // Appends to `text` what this token makes certain, which may be nothing: a character split over
  // tokens comes with its last one. An id that has no token adds nothing.
  void push(int32_t id, std::string& text);

  // Appends what was held back. Nothing may be pushed afterwards.
  void finish(std::string& text);

 private:
  void push_run_or_text(const Token& token, std::string& text);
  void end_run(std::string& text);
  void append(std::string_view piece, std::string& text);

  const Tokenizer& tokenizer_;
  SpecialTokens special_;
  uint32_t n_leading_spaces_;  // still to be dropped
  bool is_first_ = true;
  Utf8Stream utf8_;
  std::string run_;  // byte tokens whose run has not ended
};

}  // namespace bascule
