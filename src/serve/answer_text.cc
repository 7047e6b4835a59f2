#include "serve/answer_text.h"

#include <algorithm>

namespace bascule {

AnswerText::AnswerText(const Tokenizer& tokenizer, const StopStrings& stops, StopText stop_text,
                       const ReasoningMarks& marks)
    : tokenizer_(tokenizer), stops_(stops, stop_text), marks_(marks) {
  decoder_.emplace(tokenizer_, SpecialTokens::kSkip);
}

AnswerText::Added AnswerText::push(int32_t token) {
  std::string piece;
  if (marks_.is_open && token == marks_.end) {
    decoder_->finish(piece);
    decoder_.emplace(tokenizer_, SpecialTokens::kSkip);
    Added added = take(piece);
    marks_.is_open = false;
    drops_space_ = true;
    return added;
  }
  decoder_->push(token, piece);
  return take(piece);
}

AnswerText::Added AnswerText::finish() {
  std::string piece;
  decoder_->finish(piece);
  Added added = take(piece);
  if (!stops_.stopped()) stops_.finish(added.text);
  return added;
}

AnswerText::Added AnswerText::take(std::string_view piece) {
  Added added;
  if (marks_.is_open) {
    added.reasoning = piece;
  } else {
    if (drops_space_)
      piece.remove_prefix(std::min(piece.find_first_not_of(" \t\r\n"), piece.size()));
    if (!piece.empty()) drops_space_ = false;
    stops_.push(piece, added.text);
  }
  return added;
}

}  // namespace bascule
