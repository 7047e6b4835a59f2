#include "text/stream_parser.h"

#include <algorithm>

namespace bascule {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr size_t kSliceBytes = 512;

// Where the first whole `tag` begins, or the longest start of one at the end of the text; else the
// text's size.
size_t find_tag(std::string_view text, std::string_view tag) {
  for (size_t at = 0; (at = text.find(tag[0], at)) != text.npos; ++at) {
    if (tag.starts_with(text.substr(at, tag.size()))) return at;
  }
  return text.size();
}

}  // namespace

void append_text(OutputPart::Kind kind, std::string_view text, std::vector<OutputPart>& parts) {
  if (text.empty()) return;
  if (parts.empty() || parts.back().kind != kind) parts.push_back({.kind = kind});
  parts.back().text += text;
}

StreamParser::StreamParser(const Dialect* dialect, const ToolSchemas& tools, Begin begin)
    : dialect_(dialect),
      tools_(tools),
      state_(begin == Begin::kInReasoning ? State::kReasoning : State::kOpening) {}

void StreamParser::push(std::string_view text, Parts& parts) {
  if (!dialect_) return append_text(OutputPart::Kind::kContent, text, parts);
  // In slices, since each tag costs a walk over what is pending.
  for (; !text.empty(); text.remove_prefix(std::min(kSliceBytes, text.size()))) {
    push_slice(text.substr(0, kSliceBytes), parts);
  }
}

void StreamParser::push_slice(std::string_view text, Parts& parts) {
  if (call_) {
    read_call(text, parts);
  } else {
    pending_ += text;
  }
  while (!call_ && (state_ == State::kOpening ? read_opening(parts) : read_text(parts))) {
  }
}

// Before the first character of content: white space and think_begin open the reasoning.
bool StreamParser::read_opening(Parts& parts) {
  const size_t begin = pending_.find_first_not_of(kSpace);
  if (begin == pending_.npos) return false;
  const std::string_view tag = dialect_->think_begin;
  const std::string_view here = std::string_view(pending_).substr(begin, tag.size());
  if (!tag.starts_with(here)) {
    state_ = State::kContent;
  } else if (here.size() == tag.size()) {
    pending_.erase(0, begin + tag.size());
    state_ = State::kReasoning;
  } else {
    return false;
  }
  return read_text(parts);
}

// Gives text up to the next tag and reads past that.
bool StreamParser::read_text(Parts& parts) {
  const bool reasons = state_ == State::kReasoning;
  const size_t think_end = reasons ? find_tag(pending_, dialect_->think_end) : pending_.size();
  const size_t call = tools_.empty() ? pending_.size() : find_tag(pending_, dialect_->call_begin);
  const size_t at = std::min(think_end, call);
  const std::string_view tag = think_end < call ? dialect_->think_end : dialect_->call_begin;
  give(std::string_view(pending_).substr(0, at), parts);
  pending_.erase(0, at);
  if (pending_.size() < tag.size()) return false;
  std::string rest = pending_.substr(tag.size());
  pending_.clear();
  if (think_end < call) {
    enter_content();
    pending_ = std::move(rest);
  } else {
    using Place = ToolCallReader::Place;
    call_ = std::make_unique<ToolCallReader>(*dialect_, tools_,
                                             reasons ? Place::kInReasoning : Place::kInContent);
    read_call(rest, parts);
  }
  return true;
}

void StreamParser::read_call(std::string_view text, Parts& parts) {
  const ToolCallReader::State outcome = call_->push(text);
  if (outcome == ToolCallReader::State::kOpen) return;
  const std::unique_ptr<ToolCallReader> call = std::move(call_);
  if (outcome == ToolCallReader::State::kComplete) {
    enter_content();
    parts.push_back({OutputPart::Kind::kToolCall, call->arguments(), call->name()});
    ++n_calls_;
  } else {
    give(dialect_->call_begin, parts);
    give(call->text(), parts);
  }
  pending_ = call->rest();
}

void StreamParser::enter_content() {
  state_ = State::kContent;
  reasoning_.clear();
  held_space_.clear();
  after_markup_ = true;
}

void StreamParser::give(std::string_view text, Parts& parts) {
  if (state_ != State::kReasoning) return give_content(text, parts);
  append_text(OutputPart::Kind::kReasoning, text, parts);
  reasoning_ += text;
}

void StreamParser::give_content(std::string_view text, Parts& parts) {
  if (text.empty()) return;
  const size_t end = text.find_last_not_of(kSpace) + 1;
  if (end > 0) {
    if (after_markup_) {
      text.remove_prefix(text.find_first_not_of(kSpace));
      held_space_.clear();
    }
    append_text(OutputPart::Kind::kContent, held_space_, parts);
    held_space_.clear();
    after_markup_ = false;
    const size_t size = text.find_last_not_of(kSpace) + 1;
    append_text(OutputPart::Kind::kContent, text.substr(0, size), parts);
    text.remove_prefix(size);
  }
  held_space_ += text;
}

void StreamParser::finish(End end, Parts& parts) {
  if (!dialect_) return;
  if (call_) {
    give(dialect_->call_begin, parts);
    give(call_->all(), parts);
    call_.reset();
  }
  give(pending_, parts);
  pending_.clear();
  if (state_ == State::kReasoning && end == End::kTurnEnded) {
    append_text(OutputPart::Kind::kContent, reasoning_, parts);
  }
  if (!after_markup_) append_text(OutputPart::Kind::kContent, held_space_, parts);
  held_space_.clear();
}

}  // namespace bascule
