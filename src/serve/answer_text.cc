#include "serve/answer_text.h"

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

AnswerText::Added AnswerText::take(const std::string& piece) {
  Added added;
  if (marks_.is_open) {
    added.reasoning = piece;
  } else {
    stops_.push(piece, added.text);
  }
  return added;
}

}  // namespace bascule
