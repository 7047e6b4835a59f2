// One answer as it is generated: tokens to text, thinking apart from what is said, stop strings,
// printing.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "text/incremental_decoder.h"
#include "text/stop_strings.h"

namespace bascule {

struct AnswerStyle {
  bool as_ids = false;       // print token ids, not text
  bool in_thinking = false;  // the prompt ends inside the model's thinking
  bool streams = true;       // print as it comes; else keep it for printed()
  bool colour = false;       // thinking is dim; else it stands between <think> and </think>
  bool quiet = false;        // thinking is not printed
  bool logprobs = false;     // a line on standard error for each token
  int32_t think_end = -1;    // the token that ends thinking; -1: none does
};

class Answer : public std::enable_shared_from_this<Answer> {
 public:
  // `tokenizer` may be null with as_ids and without stops. Both must outlive it.
  Answer(const AnswerStyle& style, const Tokenizer* tokenizer, const StopStrings& stops);

  // For Engine::submit; keeps this answer alive.
  std::unique_ptr<RequestListener> listener();

  const std::string& text() const { return text_; }        // without the thinking
  const std::string& printed() const { return printed_; }  // what was or would have been printed
  const std::vector<int32_t>& tokens() const { return tokens_; }
  const EndEvent& end() const { return end_; }
  // "[12 prompt tokens, 34 answer tokens, first after 0.05 s, 56.7 tokens/s; ended by stop]"
  std::string summary() const;

 private:
  class Listener;
  RequestListener::Verdict take(const TokenEvent& event);
  void finish(const EndEvent& event);
  void take_id(int32_t token);
  void take_text(int32_t token);
  void flush_decoder();
  void begin_thinking();
  void end_thinking();
  void say(std::string_view piece);
  void print(std::string_view piece);
  void print_logprobs(const TokenEvent& event) const;

  AnswerStyle style_;
  const Tokenizer* tokenizer_;
  std::optional<IncrementalDecoder> decoder_;
  StopMatcher stops_;
  bool thinking_;
  std::string text_, printed_;
  std::vector<int32_t> tokens_;
  EndEvent end_;
  std::chrono::steady_clock::time_point started_, first_, last_;
};

}  // namespace bascule
