#include "text/tool_call_reader.h"

#include <algorithm>

namespace bascule {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

}  // namespace

ToolCallReader::State ToolCallReader::push(std::string_view text) {
  text_ += text;
  while (state_ == State::kOpen && read_part()) {
  }
  return state_;
}

bool ToolCallReader::read_part() {
  switch (part_) {
    case Part::kName:
      return read_name();
    case Part::kBetween:
      return read_between();
    case Part::kKey:
      return read_key();
    case Part::kBeforeValue:
      return read_before_value();
    case Part::kValue:
      return read_value();
  }
  return false;
}

bool ToolCallReader::malformed(size_t at) {
  state_ = State::kMalformed;
  at_ = at;
  return false;
}

bool ToolCallReader::begin(Part part, size_t at) {
  part_ = part;
  at_ = searched_ = at;
  return true;
}

void ToolCallReader::skip_space() {
  at_ = std::min(text_.find_first_not_of(kSpace, at_), text_.size());
}

ToolCallReader::Match ToolCallReader::match(std::string_view tag, size_t at) const {
  const std::string_view here = std::string_view(text_).substr(at, tag.size());
  if (!tag.starts_with(here)) return Match::kNo;
  return here.size() == tag.size() ? Match::kYes : Match::kNotYet;
}

// Ends at the first tag, whatever it is. Before that, text with which no declared name begins
// decides at once: prose that only mentions a call is not held back.
bool ToolCallReader::read_name() {
  const size_t end = text_.find(dialect_.call_end[0]);
  const std::string_view so_far = std::string_view(text_).substr(0, end);
  const std::string_view name = trimmed(so_far);
  const bool is_whole =
      end != text_.npos || (!name.empty() && kSpace.find(so_far.back()) != kSpace.npos);
  const bool fits = is_whole ? tools_.has(name) : tools_.has_prefix(name);
  if (!fits || so_far.size() > tools_.longest_name() + kMaxSpaceBytes) {
    return malformed(so_far.size());
  }
  if (end == text_.npos) return false;
  name_ = name;
  return begin(Part::kBetween, end);
}

bool ToolCallReader::read_between() {
  skip_space();
  const Match key = match(dialect_.key_begin, at_);
  const Match call_end = match(dialect_.call_end, at_);
  if (key == Match::kYes) return begin(Part::kKey, at_ + dialect_.key_begin.size());
  if (call_end == Match::kYes) {
    at_ += dialect_.call_end.size();
    state_ = State::kComplete;
    return false;
  }
  return key == Match::kNo && call_end == Match::kNo ? malformed(at_) : false;
}

bool ToolCallReader::read_key() {
  const size_t end = text_.find(dialect_.key_end[0], searched_);
  searched_ = std::min(end, text_.size());
  if (searched_ - at_ > kMaxKeyBytes) return malformed(searched_);
  if (end == text_.npos) return false;
  const Match match_end = match(dialect_.key_end, end);
  if (match_end == Match::kNotYet) return false;
  key_ = trimmed(std::string_view(text_).substr(at_, end - at_));
  if (match_end == Match::kNo || key_.empty() || !keys_.insert(key_).second) return malformed(end);
  return begin(Part::kBeforeValue, end + dialect_.key_end.size());
}

bool ToolCallReader::read_before_value() {
  skip_space();
  switch (match(dialect_.value_begin, at_)) {
    case Match::kNo:
      return malformed(at_);
    case Match::kNotYet:
      return false;
    case Match::kYes:
      return begin(Part::kValue, at_ + dialect_.value_begin.size());
  }
  return false;
}

// A value may hold any text but the beginning of another one: that shows that its own end is
// missing, and that what follows was not meant as a part of it. So does an end of the reasoning
// around a call; else a call that was only begun in there would swallow the answer.
bool ToolCallReader::read_value() {
  const bool in_reasoning = place_ == Place::kInReasoning;
  for (size_t tag; (tag = text_.find(dialect_.value_end[0], searched_)) != text_.npos;) {
    searched_ = tag;
    const Match end = match(dialect_.value_end, tag);
    const Match value = match(dialect_.value_begin, tag);
    const Match answer = in_reasoning ? match(dialect_.think_end, tag) : Match::kNo;
    if (end == Match::kYes) {
      add_argument(std::string_view(text_).substr(at_, tag - at_));
      return begin(Part::kBetween, tag + dialect_.value_end.size());
    }
    if (value == Match::kYes || answer == Match::kYes) return malformed(tag);
    if (end != Match::kNo || value != Match::kNo || answer != Match::kNo) return false;
    ++searched_;
  }
  searched_ = text_.size();
  return false;
}

void ToolCallReader::add_argument(std::string_view value) {
  if (!members_.empty()) members_ += ", ";
  members_ += json_string(key_) + ": " + tools_.argument_json(name_, key_, value);
}

}  // namespace bascule
