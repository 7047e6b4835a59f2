#include "engine/kv/pages.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace bascule {

PageRun::PageRun(PageRun&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      row_(std::exchange(other.row_, -1)),
      n_pages_(std::exchange(other.n_pages_, 0)) {}

PageRun& PageRun::operator=(PageRun&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(row_, other.row_);
  std::swap(n_pages_, other.n_pages_);
  return *this;
}

PageRun::~PageRun() {
  if (pool_) pool_->release(*this);
}

PageHold::PageHold(PageHold&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), page_(std::exchange(other.page_, -1)) {}

PageHold& PageHold::operator=(PageHold&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(page_, other.page_);
  return *this;
}

PageHold::~PageHold() {
  if (!pool_) return;
  --pool_->n_holds_;
  pool_->remove_holder(page_);
}

Result<PagePool> PagePool::create(const Options& options) {
  const int64_t n_entries = options.max_runs * options.max_pages_per_run;
  BASCULE_TRY_ASSIGN(Buffer table,
                     Buffer::reserve(n_entries * int64_t{sizeof(int32_t)}, "page table"));
  return PagePool(options, std::move(table));
}

PagePool::PagePool(const Options& options, Buffer table)
    : options_(options),
      table_(std::move(table)),
      n_holders_(size_t(options.n_pages), 0),
      is_kept_(size_t(options.n_pages), false),
      idle_before_(size_t(options.n_pages) + 1, int32_t(options.n_pages)),
      idle_after_(size_t(options.n_pages) + 1, int32_t(options.n_pages)),
      pages_of_row_(options.max_runs, 0) {
  free_pages_.reserve(size_t(options.n_pages));
  for (int64_t page = options.n_pages; page-- > 0;) free_pages_.push_back(int32_t(page));
  for (int64_t row = options.max_runs; row-- > 0;) free_rows_.push_back(int32_t(row));
}

std::span<int32_t> PagePool::entries(int32_t row) const {
  const int64_t width = options_.max_pages_per_run;
  return {reinterpret_cast<int32_t*>(table_.data()) + row * width, size_t(width)};
}

View<const int32_t, 2> PagePool::table() const {
  return View<const int32_t, 2>::packed(reinterpret_cast<const int32_t*>(table_.data()),
                                        {options_.max_runs, options_.max_pages_per_run});
}

PageRun PagePool::open() {
  BASCULE_CHECK(can_open());
  PageRun run;
  run.pool_ = this;
  run.row_ = free_rows_.back();
  free_rows_.pop_back();
  return run;
}

bool PagePool::extend(PageRun& run, int64_t n_pages) {
  BASCULE_CHECK(run.pool_ == this);
  if (n_pages > n_free()) return false;
  for (int64_t i = 0; i < n_pages; ++i) {
    const int32_t page = free_pages_.back();
    free_pages_.pop_back();
    append(run, page);
  }
  return true;
}

void PagePool::append(PageRun& run, int32_t page) {
  BASCULE_CHECK_LT(run.n_pages_, options_.max_pages_per_run);
  add_holder(page);
  entries(run.row_)[run.n_pages_++] = page;
  pages_of_row_[run.row_] = run.n_pages_;
}

void PagePool::keep(int32_t page) {
  BASCULE_CHECK(n_holders_[page] > 0 && !is_kept_[page]);
  is_kept_[page] = true;
  ++n_kept_;
}

void PagePool::share(PageRun& run, int32_t page) {
  BASCULE_CHECK(run.pool_ == this && is_kept_[page]);
  append(run, page);
}

void PagePool::replace(PageRun& run, int64_t i, int32_t page) {
  BASCULE_CHECK(run.pool_ == this && is_kept_[page]);
  BASCULE_CHECK_LT(i, run.n_pages_);
  add_holder(page);
  remove_holder(std::exchange(entries(run.row_)[i], page));
}

PageHold PagePool::hold(int32_t page) {
  BASCULE_CHECK(is_kept_[page]);
  add_holder(page);
  ++n_holds_;
  PageHold hold;
  hold.pool_ = this;
  hold.page_ = page;
  return hold;
}

int32_t PagePool::oldest_idle() const { return n_idle() > 0 ? idle_after_[options_.n_pages] : -1; }

void PagePool::drop(int32_t page) {
  BASCULE_CHECK(is_idle(page));
  add_holder(page);  // out of the ring
  is_kept_[page] = false;
  --n_kept_;
  remove_holder(page);
}

void PagePool::add_holder(int32_t page) {
  if (n_holders_[page]++ > 0) return;
  ++n_held_;
  if (!is_kept_[page]) return;
  idle_after_[idle_before_[page]] = idle_after_[page];
  idle_before_[idle_after_[page]] = idle_before_[page];
}

void PagePool::remove_holder(int32_t page) {
  BASCULE_CHECK_LT(0, n_holders_[page]);
  if (--n_holders_[page] > 0) return;
  --n_held_;
  if (!is_kept_[page]) return set_free(page);
  const int32_t end = int32_t(options_.n_pages), newest = idle_before_[end];
  idle_before_[page] = newest;
  idle_after_[page] = end;
  idle_after_[newest] = idle_before_[end] = page;
}

void PagePool::set_free(int32_t page) {
  poison(page);
  free_pages_.push_back(page);
}

void PagePool::release(PageRun& run) {
  const std::span<int32_t> row = entries(run.row_).first(size_t(run.n_pages_));
  // Backwards, so that the first page given back is the next to be dealt, and so that a page idles
  // longer than those before it in the sequence.
  for (size_t i = row.size(); i-- > 0;) remove_holder(row[i]);
  if (!poisoned_.empty()) std::fill(row.begin(), row.end(), -1);
  pages_of_row_[run.row_] = 0;
  free_rows_.push_back(run.row_);
}

void PagePool::poison_free_pages(std::span<std::byte* const> memories, int64_t page_bytes) {
  BASCULE_CHECK_EQ(n_held_, 0);
  poisoned_.assign(memories.begin(), memories.end());
  page_bytes_ = page_bytes;
  for (const int32_t page : free_pages_) poison(page);
  for (int32_t row = 0; row < options_.max_runs; ++row)
    std::fill(entries(row).begin(), entries(row).end(), -1);
}

// All bits set is NaN in F32, BF16, F16 and E4M3.
void PagePool::poison(int32_t page) const {
  for (std::byte* const memory : poisoned_)
    std::memset(memory + int64_t{page} * page_bytes_, 0xff, size_t(page_bytes_));
}

void PagePool::audit() const {
  std::vector<int32_t> n_rows(size_t(n_pages()), 0);
  for (int32_t row = 0; row < options_.max_runs; ++row)
    for (int64_t i = 0; i < pages_of_row_[row]; ++i) {
      const int32_t page = entries(row)[i];
      BASCULE_CHECK_LE(0, page);
      BASCULE_CHECK_LT(page, n_pages());
      ++n_rows[page];
    }
  std::vector<bool> is_free(size_t(n_pages()), false);
  for (const int32_t page : free_pages_) {
    BASCULE_CHECK(!is_free[page] && !is_kept_[page]);
    is_free[page] = true;
  }
  int64_t n_holds = 0, n_held = 0, n_kept = 0, n_idle_pages = 0;
  for (int32_t page = 0; page < n_pages(); ++page) {
    BASCULE_CHECK_LE(n_rows[page], n_holders_[page]);
    BASCULE_CHECK_EQ(is_free[page], n_holders_[page] == 0 && !is_kept_[page]);
    n_holds += n_holders_[page] - n_rows[page];
    n_held += n_holders_[page] > 0;
    n_kept += is_kept_[page];
  }
  const int32_t end = int32_t(n_pages());
  for (int32_t page = idle_after_[end]; page != end; page = idle_after_[page], ++n_idle_pages)
    BASCULE_CHECK(is_idle(page));
  BASCULE_CHECK_EQ(n_holds, n_holds_);
  BASCULE_CHECK_EQ(n_held, n_held_);
  BASCULE_CHECK_EQ(n_kept, n_kept_);
  BASCULE_CHECK_EQ(n_idle_pages, n_idle());
}

}  // namespace bascule
