// Stop strings, found in decoded text wherever its pieces are cut. Text is held back only while it
// may yet become part of a stop string, and nothing at or after a stop is ever given out.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace bascule {

// The stop strings of a request, compiled once (Aho-Corasick: one automaton over all of them).
// Time and memory are linear in their bytes, whatever their number and length. Immutable; any
// thread.
class StopStrings {
 public:
  static constexpr int64_t kMaxBytes = int64_t{1} << 30;  // of all together

  StopStrings();  // none
  // An empty stop string is kInvalidArgument: it would stop before the first character.
  static Result<StopStrings> compile(std::span<const std::string> stops);

  bool empty() const { return nodes_.size() == 1; }

 private:
  friend class StopMatcher;
  static constexpr int32_t kNone = -1;

  // A start of one or more stop strings. Node 0 is the empty one.
  struct Node {
    int32_t length = 0;    // of this start, in bytes
    int32_t fallback = 0;  // the longest proper end of it that is a start too
    int32_t stop = kNone;  // the longest stop string that ends here
    int32_t first_child = kNone;
    int32_t next_sibling = kNone;
    char byte = 0;  // its last
  };

  int32_t child(int32_t node, char byte) const;
  int32_t next(int32_t node, char byte) const;
  int32_t add_child(int32_t node, char byte);
  void add(std::string_view stop, int32_t index);
  void link();

  std::vector<Node> nodes_;
  std::array<int32_t, 256> children_of_root_;  // the root may have many; others seldom have
  std::vector<int32_t> stop_bytes_;            // length of each stop string
};

enum class StopText { kCut, kKeep };

// Follows one text through its StopStrings, which must outlive it. One thread at a time.
class StopMatcher {
 public:
  explicit StopMatcher(const StopStrings& stops, StopText stop_text = StopText::kCut);

  // Appends to `out` the text that no stop string can claim any more. The stop string whose end
  // comes first stops the text; of several that end there, the longest. After that, nothing more.
  void push(std::string_view text, std::string& out);

  // The text ended without a stop: appends what was held back.
  void finish(std::string& out);

  bool stopped() const { return stop_ != StopStrings::kNone; }
  int32_t stop() const { return stop_; }  // which, as given to compile(); -1 before

 private:
  void give(size_t end, std::string& out);

  const StopStrings& stops_;
  StopText stop_text_;
  int32_t node_ = 0;
  int32_t stop_ = StopStrings::kNone;
  std::string held_;  // from n_given_ on: not given out yet
  size_t n_given_ = 0;
};

}  // namespace bascule
