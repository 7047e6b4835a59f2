#include "text/incremental_decoder.h"

namespace bascule {

IncrementalDecoder::IncrementalDecoder(const Tokenizer& tokenizer, SpecialTokens special)
    : tokenizer_(tokenizer),
      special_(special),
      n_leading_spaces_(tokenizer.decoding().n_leading_spaces) {}

void IncrementalDecoder::push(int32_t id, std::string& text) {
  const std::optional<Token> token = tokenizer_.token_of(id);
  if (!token || (token->is_special && special_ == SpecialTokens::kSkip)) return;
  switch (tokenizer_.decoding().joining) {
    case Joining::kBytes:
      utf8_.push(token->piece, text);
      break;
    case Joining::kRuns:
      push_run_or_text(*token, text);
      break;
    case Joining::kSpaced:
      if (!is_first_) text += ' ';
      text += token->piece;
      break;
  }
  is_first_ = false;
}

void IncrementalDecoder::finish(std::string& text) {
  utf8_.finish(text);
  end_run(text);
}

void IncrementalDecoder::push_run_or_text(const Token& token, std::string& text) {
  if (token.is_byte) {
    run_ += token.piece;
    return;
  }
  end_run(text);
  append(token.piece, text);
}

void IncrementalDecoder::end_run(std::string& text) {
  if (run_.empty()) return;
  if (is_utf8(run_)) {
    append(run_, text);
  } else {
    for (size_t i = 0; i < run_.size(); ++i) append(kReplacementCharacter, text);
  }
  run_.clear();
}

void IncrementalDecoder::append(std::string_view piece, std::string& text) {
  while (n_leading_spaces_ > 0 && !piece.empty()) {
    if (piece.front() != ' ') {
      n_leading_spaces_ = 0;
      break;
    }
    piece.remove_prefix(1);
    --n_leading_spaces_;
  }
  text += piece;
}

}  // namespace bascule
