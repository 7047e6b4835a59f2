// Which kept page holds the rows of which tokens. A tree: a node is a page, and stands for the
// tokens of its page after those of its ancestors. Whole pages can be shared; a page that agrees
// in its first tokens alone, or is only filled so far, can be copied.
//
// Tokens are compared, never hashes of them, so that two prompts cannot be taken for each other.
// The children of all nodes lie in one ordered set: whether a child equals the next tokens, and
// which child agrees longest with them, is seen beside one lower bound. Nothing is allocated after
// construction, but for salts longer than a string holds in place.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bascule {

class PrefixIndex {
 public:
  static constexpr int32_t kNone = -1;

  PrefixIndex(int64_t n_pages, int64_t page_size);

  struct Hit {
    int32_t last_page = kNone;  // of the whole pages; the others are its ancestors
    int64_t n_pages = 0;
    int32_t partial_page = kNone;  // holds the rows of n_partial more tokens
    int64_t n_partial = 0;
  };
  // The longest known beginning of `tokens` under `salt`.
  Hit find(std::string_view salt, std::span<const int32_t> tokens) const;

  struct Inserted {
    int32_t page = kNone;       // what now stands for the tokens: another page if they were known
    int32_t redundant = kNone;  // a page that knows no token that `page` doesn't
  };
  // `page` holds the rows of `tokens`, at most a page's, after those of `parent`; kNone: from the
  // start, under `salt`.
  Inserted insert(std::string_view salt, int32_t parent, std::span<const int32_t> tokens,
                  int32_t page);

  void forget(int32_t page);  // a leaf
  int32_t parent_of(int32_t page) const { return nodes_->at[page].parent; }
  int64_t n_pages() const { return int64_t(children_.size()); }

 private:
  struct Node {
    int32_t parent = kNone;
    int32_t n_children = 0;
    int64_t n_tokens = 0;
    std::string salt;  // of a node without parent
  };
  struct Key {
    int32_t parent;
    std::string_view salt;
    std::span<const int32_t> tokens;
  };
  struct Nodes {
    std::vector<Node> at;         // [n_pages], by page
    std::vector<int32_t> tokens;  // [n_pages, page_size]
    int64_t page_size = 0;

    Key key(int32_t page) const;
    Key key(const Key& key) const { return key; }
  };
  struct Order {
    using is_transparent = void;
    const Nodes* nodes;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return precedes(nodes->key(a), nodes->key(b));
    }
  };
  using Children = std::set<int32_t, Order>;

  static bool precedes(const Key& a, const Key& b);
  // Tokens in which `page` agrees with the key, if it is a child of the same node; else -1.
  int64_t n_agreeing(int32_t page, const Key& key) const;

  std::unique_ptr<Nodes> nodes_;  // where the order finds them, wherever the index moves
  Children children_;
  std::vector<Children::node_type> spare_;  // elements of the set that are not in it
};

}  // namespace bascule
