#include "engine/kv/cache.h"

#include <utility>

#include "base/check.h"

namespace bascule {

Result<KvCache> KvCache::create(const Options& options) {
  BASCULE_TRY_ASSIGN(PagePool pool, PagePool::create(options.pool));
  return KvCache(options, std::move(pool));
}

KvCache::KvCache(const Options& options, PagePool pool)
    : options_(options),
      pool_(std::move(pool)),
      index_(options.keeps_prefixes ? options.pool.n_pages : 0, options.page_size) {
  path_.reserve(size_t(options.pool.max_pages_per_run));
}

std::optional<KvCache::Start> KvCache::start(std::string_view salt, std::span<const int32_t> tokens,
                                             int64_t n_more, bool reuses) {
  const int64_t n_wanted = pages_for(int64_t(tokens.size()) + n_more);
  // Without a look at the tokens: a hit saves no more than every kept page.
  if (!pool_.can_open() || n_wanted > pool_.n_free() + pool_.n_kept()) return {};
  PrefixIndex::Hit hit;
  if (reuses) hit = index_.find(salt, tokens.first(tokens.size() - 1));
  // The page that is copied takes room beside the copy.
  if (!has_room(hit, n_wanted)) hit.partial_page = PrefixIndex::kNone, hit.n_partial = 0;
  if (!has_room(hit, n_wanted)) return {};

  Start start{.pages = pool_.open(),
              .n_cached = hit.n_pages * options_.page_size + hit.n_partial,
              .copied_from = {}};
  share_path(start.pages, hit);
  if (hit.n_partial > 0) start.copied_from = pool_.hold(hit.partial_page);
  BASCULE_CHECK(extend(start.pages, pages_for(int64_t(tokens.size())) - hit.n_pages));
  return start;
}

// Idle pages make room, but not those of the hit.
bool KvCache::has_room(const PrefixIndex::Hit& hit, int64_t n_pages) const {
  int64_t n_room = pool_.n_free() + pool_.n_idle();
  if (hit.n_partial > 0) n_room -= pool_.is_idle(hit.partial_page);
  for (int32_t page = hit.last_page; page != PrefixIndex::kNone; page = index_.parent_of(page))
    n_room -= pool_.is_idle(page);
  return n_pages - hit.n_pages <= n_room;
}

void KvCache::share_path(PageRun& run, const PrefixIndex::Hit& hit) {
  path_.clear();
  for (int32_t page = hit.last_page; page != PrefixIndex::kNone; page = index_.parent_of(page))
    path_.push_back(page);
  for (size_t i = path_.size(); i-- > 0;) pool_.share(run, path_[i]);
}

bool KvCache::extend(PageRun& run, int64_t n_pages) {
  if (n_pages > pool_.n_free() + pool_.n_idle()) return false;
  while (pool_.n_free() < n_pages) drop(pool_.oldest_idle());
  return pool_.extend(run, n_pages);
}

void KvCache::drop(int32_t page) {
  index_.forget(page);
  pool_.drop(page);
}

void KvCache::publish(PageRun& run, std::string_view salt, std::span<const int32_t> tokens,
                      int64_t n_before) {
  if (!options_.keeps_prefixes) return;
  const int64_t size = options_.page_size;
  for (int64_t i = n_before / size; (i + 1) * size <= int64_t(tokens.size()); ++i) {
    const int32_t page = pool_.page_of(run, i);
    const auto inserted =
        index_.insert(salt, i > 0 ? pool_.page_of(run, i - 1) : PrefixIndex::kNone,
                      tokens.subspan(size_t(i * size), size_t(size)), page);
    if (inserted.page == page) {
      pool_.keep(page);
    } else {
      pool_.replace(run, i, inserted.page);
    }
    if (inserted.redundant != PrefixIndex::kNone && pool_.is_idle(inserted.redundant))
      drop(inserted.redundant);
  }
}

void KvCache::publish_last(const PageRun& run, std::string_view salt,
                           std::span<const int32_t> tokens) {
  const int64_t i = int64_t(tokens.size()) / options_.page_size;
  const auto rest = tokens.subspan(size_t(i * options_.page_size));
  if (!options_.keeps_prefixes || rest.empty()) return;
  const int32_t page = pool_.page_of(run, i);
  const auto inserted =
      index_.insert(salt, i > 0 ? pool_.page_of(run, i - 1) : PrefixIndex::kNone, rest, page);
  if (inserted.page == page) pool_.keep(page);
  if (inserted.redundant != PrefixIndex::kNone && pool_.is_idle(inserted.redundant))
    drop(inserted.redundant);
}

void KvCache::audit() const {
  pool_.audit();
  BASCULE_CHECK_EQ(index_.n_pages(), pool_.n_kept());
}

}  // namespace bascule
