// The tokens of one answer as text: reasoning apart from what is said, cut at stop strings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/incremental_decoder.h"
#include "text/stop_strings.h"

namespace bascule {

// How a model marks its reasoning.
struct ReasoningMarks {
  int32_t end = -1;      // the token that ends it; -1: there is no reasoning
  bool is_open = false;  // the prompt ends inside it
};

class AnswerText {
 public:
  // Both must outlive it.
  AnswerText(const Tokenizer& tokenizer, const StopStrings& stops, StopText stop_text,
             const ReasoningMarks& marks);

  // What becomes certain. Stop strings are looked for in the text alone: reasoning is full of what
  // they usually are, such as empty lines.
  struct Added {
    std::string reasoning, text;
  };
  Added push(int32_t token);
  Added finish();

  bool is_reasoning() const { return marks_.is_open; }
  bool stopped() const { return stops_.stopped(); }
  int32_t stop() const { return stops_.stop(); }  // which stop string; -1: none

 private:
  Added take(std::string_view piece);

  const Tokenizer& tokenizer_;
  std::optional<IncrementalDecoder> decoder_;  // begun anew after the reasoning
  StopMatcher stops_;
  ReasoningMarks marks_;
  bool drops_space_ = false;  // white space after the reasoning is the format's, not the answer's
};

}  // namespace bascule
