// One tool call, read as its text arrives, from behind call_begin on. It is given out only when it
// is complete: what was sent to a client can not be taken back when the rest turns out malformed.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "text/dialects.h"
#include "text/tool_schemas.h"

namespace bascule {

// Holds references to both arguments. Its outcome depends on the text alone, never on its cuts, and
// time is linear in the text.
class ToolCallReader {
 public:
  enum class Place { kInReasoning, kInContent };
  ToolCallReader(const Dialect& dialect, const ToolSchemas& tools, Place place)
      : dialect_(dialect), tools_(tools), place_(place) {}

  enum class State {
    kOpen,       // wants more
    kComplete,   // name() and arguments() are there
    kMalformed,  // text() is no call
  };

  State push(std::string_view text);

  const std::string& name() const { return name_; }
  std::string arguments() const { return "{" + members_ + "}"; }  // one JSON object
  // What was read: the call, or of a malformed one all up to where it went wrong.
  std::string_view text() const { return std::string_view(text_).substr(0, at_); }
  std::string_view rest() const { return std::string_view(text_).substr(at_); }
  std::string_view all() const { return text_; }  // both

 private:
  enum class Part { kName, kBetween, kKey, kBeforeValue, kValue };
  static constexpr size_t kMaxKeyBytes = 1024;
  static constexpr size_t kMaxSpaceBytes = 64;  // around a name

  // Each reads one part of the call; false where it wants more text or the call has ended.
  bool read_name();
  bool read_between();
  bool read_key();
  bool read_before_value();
  bool read_value();
  bool read_part();

  void add_argument(std::string_view value);
  bool malformed(size_t at);
  bool begin(Part part, size_t at);
  void skip_space();
  enum class Match { kNo, kNotYet, kYes };
  Match match(std::string_view tag, size_t at) const;

  const Dialect& dialect_;
  const ToolSchemas& tools_;
  Place place_;
  State state_ = State::kOpen;
  Part part_ = Part::kName;
  std::string text_;
  size_t at_ = 0;        // where the part begins
  size_t searched_ = 0;  // no tag ends the part before
  std::string name_, key_;
  std::set<std::string> keys_;
  std::string members_;  // of the JSON object, so far
};

}  // namespace bascule
