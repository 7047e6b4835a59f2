// The KV cache of one data-parallel group: the pages, and the index of what the kept ones hold. A
// request starts with the rows that are known for its first tokens; pages that it fills are kept
// for others, and dropped, longest unused first, when pages are wanted. Everything that a page
// holds of a token, its latents and its index keys, goes this way together.
//
// A run holds the kept page of its tokens wherever there is one, so each run holds a path of the
// tree from its root, and an idle page has idle descendants alone (pages.h: the oldest is a leaf).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/kv/pages.h"
#include "engine/kv/prefix_index.h"

namespace bascule {

class KvCache {
 public:
  struct Options {
    PagePool::Options pool;
    int64_t page_size = 16;      // tokens
    bool keeps_prefixes = true;  // else a page is free when its run leaves it
  };
  static Result<KvCache> create(const Options& options);

  // Where a request begins.
  struct Start {
    PageRun pages;         // for all its tokens
    int64_t n_cached = 0;  // rows that are in them
    PageHold copied_from;  // if not empty: rows of page n_cached / page_size come from this page
  };
  // With room for the tokens and `n_more`, if there is; all but the last token may be found.
  std::optional<Start> start(std::string_view salt, std::span<const int32_t> tokens, int64_t n_more,
                             bool reuses);

  bool extend(PageRun& run, int64_t n_pages);  // all of them, or none and false

  // The run holds the rows of `tokens`, those of the first n_before had been published: pages that
  // are full are kept, or exchanged for those that are kept already.
  void publish(PageRun& run, std::string_view salt, std::span<const int32_t> tokens,
               int64_t n_before);
  // Before the run goes, the same for the page that is not full.
  void publish_last(const PageRun& run, std::string_view salt, std::span<const int32_t> tokens);

  const PagePool& pool() const { return pool_; }
  PagePool& pool() { return pool_; }
  int64_t pages_for(int64_t n_tokens) const {
    return (n_tokens + options_.page_size - 1) / options_.page_size;
  }

  // The pool's, and that the index knows every kept page and no other.
  void audit() const;

 private:
  KvCache(const Options& options, PagePool pool);
  bool has_room(const PrefixIndex::Hit& hit, int64_t n_pages) const;
  void share_path(PageRun& run, const PrefixIndex::Hit& hit);
  void drop(int32_t page);

  Options options_;
  PagePool pool_;
  PrefixIndex index_;
  std::vector<int32_t> path_;  // of a hit, deepest first
};

}  // namespace bascule
