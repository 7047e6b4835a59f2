#include "text/stop_strings.h"

#include <fmt/format.h>

namespace bascule {
namespace {

size_t index_of(char byte) { return static_cast<uint8_t>(byte); }

}  // namespace

StopStrings::StopStrings() : nodes_(1) { children_of_root_.fill(kNone); }

Result<StopStrings> StopStrings::compile(std::span<const std::string> stops) {
  int64_t n_bytes = 0;
  for (const std::string& stop : stops) {
    if (stop.empty()) return invalid_argument("a stop string is empty; leave it out");
    n_bytes += static_cast<int64_t>(stop.size());
  }
  if (n_bytes > kMaxBytes) {
    return out_of_range(
        fmt::format("stop strings of {} bytes together; at most {} are taken", n_bytes, kMaxBytes));
  }
  StopStrings compiled;
  for (const std::string& stop : stops) {
    compiled.add(stop, static_cast<int32_t>(compiled.stop_bytes_.size()));
    compiled.stop_bytes_.push_back(static_cast<int32_t>(stop.size()));
  }
  compiled.link();
  return compiled;
}

int32_t StopStrings::child(int32_t node, char byte) const {
  if (node == 0) return children_of_root_[index_of(byte)];
  int32_t found = nodes_[node].first_child;
  while (found != kNone && nodes_[found].byte != byte) found = nodes_[found].next_sibling;
  return found;
}

int32_t StopStrings::next(int32_t node, char byte) const {
  for (;;) {
    const int32_t found = child(node, byte);
    if (found != kNone) return found;
    if (node == 0) return 0;
    node = nodes_[node].fallback;
  }
}

int32_t StopStrings::add_child(int32_t node, char byte) {
  const auto added = static_cast<int32_t>(nodes_.size());
  nodes_.push_back(
      {.length = nodes_[node].length + 1, .next_sibling = nodes_[node].first_child, .byte = byte});
  nodes_[node].first_child = added;
  if (node == 0) children_of_root_[index_of(byte)] = added;
  return added;
}

void StopStrings::add(std::string_view stop, int32_t index) {
  int32_t node = 0;
  for (const char byte : stop) {
    const int32_t found = child(node, byte);
    node = found == kNone ? add_child(node, byte) : found;
  }
  if (nodes_[node].stop == kNone) nodes_[node].stop = index;
}

// Breadth first, so that a node's fallback, which is shorter, is finished before it.
void StopStrings::link() {
  std::vector<int32_t> order = {0};
  order.reserve(nodes_.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const int32_t parent = order[i];
    for (int32_t node = nodes_[parent].first_child; node != kNone;
         node = nodes_[node].next_sibling) {
      order.push_back(node);
      if (parent != 0) nodes_[node].fallback = next(nodes_[parent].fallback, nodes_[node].byte);
      if (nodes_[node].stop == kNone) nodes_[node].stop = nodes_[nodes_[node].fallback].stop;
    }
  }
}

StopMatcher::StopMatcher(const StopStrings& stops, StopText stop_text)
    : stops_(stops), stop_text_(stop_text) {}

void StopMatcher::push(std::string_view text, std::string& out) {
  if (stopped()) return;
  const size_t n_before = held_.size();
  held_ += text;
  for (size_t i = 0; i < text.size(); ++i) {
    node_ = stops_.next(node_, text[i]);
    stop_ = stops_.nodes_[node_].stop;
    if (!stopped()) continue;
    const size_t end = n_before + i + 1;
    give(stop_text_ == StopText::kKeep ? end : end - stops_.stop_bytes_[stop_], out);
    return;
  }
  give(held_.size() - stops_.nodes_[node_].length, out);
}

void StopMatcher::finish(std::string& out) {
  if (!stopped()) give(held_.size(), out);
}

void StopMatcher::give(size_t end, std::string& out) {
  out.append(held_, n_given_, end - n_given_);
  n_given_ = end;
  // Moved to the front only once as much was given as is held: each byte moves a bounded number of
  // times, also behind a stop string of a megabyte.
  if (n_given_ > held_.size() / 2) {
    held_.erase(0, n_given_);
    n_given_ = 0;
  }
}

}  // namespace bascule
