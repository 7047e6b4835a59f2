// What the model writes, as it arrives, to reasoning, content and tool calls. The parts depend on
// the whole text alone, never on where it was cut: streamed and not streamed give the same.
//
// The rules:
//  - Reasoning ends at think_end, or at a well-formed call of a declared tool. Content may open
//  with
//    reasoning where the model writes think_begin itself.
//  - A call counts where it is complete, well formed, and of a declared tool; it is then given out
//    whole. All else stays the text that it is, to the last character.
//  - White space between think_end and content, and around a call, belongs to the markup.
//  - A turn that the model ended inside its reasoning is an answer without thinking: its text is
//    given again as content. One that was cut off there is reasoning only.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/dialects.h"
#include "text/tool_call_reader.h"
#include "text/tool_schemas.h"

namespace bascule {

struct OutputPart {
  enum class Kind { kReasoning, kContent, kToolCall };
  Kind kind = Kind::kContent;
  std::string text;  // of a call: its arguments, one JSON object
  std::string name;  // of a call

  bool operator==(const OutputPart&) const = default;
};

// Adds to the last part where it is text of the same kind.
void append_text(OutputPart::Kind kind, std::string_view text, std::vector<OutputPart>& parts);

// One choice of one answer. One thread at a time.
class StreamParser {
 public:
  enum class Begin {
    kInReasoning,  // the prompt ends inside the thinking (opens_thinking)
    kInContent,
  };
  enum class End {
    kTurnEnded,  // the model said so
    kCut,        // by a limit, a stop string or a client
  };

  // `dialect` null: all is content. `tools` must outlive the parser.
  StreamParser(const Dialect* dialect, const ToolSchemas& tools, Begin begin);

  // Append to `parts` what is certain; text is held back only while it may become markup.
  void push(std::string_view text, std::vector<OutputPart>& parts);
  void finish(End end, std::vector<OutputPart>& parts);

  bool in_reasoning() const { return state_ == State::kReasoning; }
  int n_calls() const { return n_calls_; }

 private:
  using Parts = std::vector<OutputPart>;
  enum class State { kOpening, kReasoning, kContent };

  void push_slice(std::string_view text, Parts& parts);

  // Each takes text from the front of pending_; false where it wants more.
  bool read_opening(Parts& parts);
  bool read_text(Parts& parts);
  void read_call(std::string_view text, Parts& parts);

  void give(std::string_view text, Parts& parts);
  void give_content(std::string_view text, Parts& parts);
  void enter_content();

  const Dialect* dialect_;
  const ToolSchemas& tools_;
  State state_;
  std::string pending_;
  std::unique_ptr<ToolCallReader> call_;  // while inside one
  std::string reasoning_;                 // all of it, until it is known to be reasoning
  std::string held_space_;                // of content: given out when more content follows
  bool after_markup_ = false;             // no content since think_end or a call
  int n_calls_ = 0;
};

}  // namespace bascule
