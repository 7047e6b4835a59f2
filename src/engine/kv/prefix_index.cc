#include "engine/kv/prefix_index.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/check.h"

namespace bascule {

PrefixIndex::PrefixIndex(int64_t n_pages, int64_t page_size)
    : nodes_(std::make_unique<Nodes>()), children_(Order{nodes_.get()}) {
  nodes_->at.resize(size_t(n_pages));
  nodes_->tokens.resize(size_t(n_pages * page_size));
  nodes_->page_size = page_size;
  spare_.reserve(size_t(n_pages));
  for (int64_t i = 0; i < n_pages; ++i)
    spare_.push_back(children_.extract(children_.insert(int32_t(i)).first));
}

PrefixIndex::Key PrefixIndex::Nodes::key(int32_t page) const {
  const Node& node = at[page];
  return {node.parent, node.salt,
          std::span(tokens).subspan(size_t(page * page_size), size_t(node.n_tokens))};
}

bool PrefixIndex::precedes(const Key& a, const Key& b) {
  if (a.parent != b.parent) return a.parent < b.parent;
  if (const int order = a.salt.compare(b.salt)) return order < 0;
  return std::ranges::lexicographical_compare(a.tokens, b.tokens);
}

int64_t PrefixIndex::n_agreeing(int32_t page, const Key& key) const {
  const Key own = nodes_->key(page);
  if (own.parent != key.parent || own.salt != key.salt) return -1;
  return std::ranges::mismatch(own.tokens, key.tokens).in1 - own.tokens.begin();
}

PrefixIndex::Hit PrefixIndex::find(std::string_view salt, std::span<const int32_t> tokens) const {
  Hit hit;
  while (!tokens.empty()) {
    const size_t n = std::min(tokens.size(), size_t(nodes_->page_size));
    const Key key{hit.last_page, hit.last_page == kNone ? salt : "", tokens.first(n)};
    const auto next = children_.lower_bound(key);
    // Of all children, the one before and the one after agree longest.
    const auto consider = [&](int32_t page) {
      const int64_t agreeing = n_agreeing(page, key);
      if (agreeing <= hit.n_partial) return;
      hit.n_partial = agreeing;
      hit.partial_page = page;
    };
    if (next != children_.end()) consider(*next);
    if (next != children_.begin()) consider(*std::prev(next));
    if (hit.n_partial < nodes_->page_size) return hit;
    hit = {.last_page = hit.partial_page, .n_pages = hit.n_pages + 1};
    tokens = tokens.subspan(n);
  }
  return hit;
}

PrefixIndex::Inserted PrefixIndex::insert(std::string_view salt, int32_t parent,
                                          std::span<const int32_t> tokens, int32_t page) {
  BASCULE_CHECK(!tokens.empty() && int64_t(tokens.size()) <= nodes_->page_size);
  const Key key{parent, parent == kNone ? salt : "", tokens};
  const auto next = children_.lower_bound(key);
  if (next != children_.end() && n_agreeing(*next, key) == int64_t(tokens.size()))
    return {.page = *next};
  Inserted inserted{.page = page};
  if (next != children_.begin()) {
    const int32_t before = *std::prev(next);
    if (n_agreeing(before, key) == nodes_->at[before].n_tokens) inserted.redundant = before;
  }
  nodes_->at[page] = {.parent = parent,
                      .n_children = 0,
                      .n_tokens = int64_t(tokens.size()),
                      .salt = std::string(key.salt)};
  std::ranges::copy(tokens, nodes_->tokens.begin() + page * nodes_->page_size);
  if (parent != kNone) ++nodes_->at[parent].n_children;
  BASCULE_CHECK(!spare_.empty());
  Children::node_type element = std::move(spare_.back());
  spare_.pop_back();
  element.value() = page;
  BASCULE_CHECK(children_.insert(std::move(element)).inserted);
  return inserted;
}

void PrefixIndex::forget(int32_t page) {
  Node& node = nodes_->at[page];
  BASCULE_CHECK_EQ(node.n_children, 0);
  const auto element = children_.find(page);
  BASCULE_CHECK(element != children_.end() && *element == page);
  spare_.push_back(children_.extract(element));
  if (node.parent != kNone) --nodes_->at[node.parent].n_children;
  node.salt.clear();
}

}  // namespace bascule
