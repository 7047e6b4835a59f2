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

Result<PagePool> PagePool::create(const Options& options) {
  const int64_t n_entries = options.max_runs * options.max_pages_per_run;
  BASCULE_TRY_ASSIGN(Buffer table,
                     Buffer::reserve(n_entries * int64_t{sizeof(int32_t)}, "page table"));
  return PagePool(options, std::move(table));
}

PagePool::PagePool(const Options& options, Buffer table)
    : options_(options), table_(std::move(table)), pages_of_row_(options.max_runs, 0) {
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
  BASCULE_CHECK_LE(run.n_pages_ + n_pages, options_.max_pages_per_run);
  const std::span<int32_t> row = entries(run.row_);
  for (int64_t i = 0; i < n_pages; ++i) {
    row[run.n_pages_++] = free_pages_.back();
    free_pages_.pop_back();
  }
  n_held_ += n_pages;
  pages_of_row_[run.row_] = run.n_pages_;
  return true;
}

void PagePool::release(PageRun& run) {
  const std::span<int32_t> row = entries(run.row_).first(size_t(run.n_pages_));
  // Backwards, so that the first page given back is the next to be dealt.
  for (size_t i = row.size(); i-- > 0;) {
    poison(row[i]);
    free_pages_.push_back(row[i]);
  }
  if (!poisoned_.empty()) std::fill(row.begin(), row.end(), -1);
  n_held_ -= run.n_pages_;
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
  BASCULE_CHECK_EQ(n_free() + n_held_, n_pages());
  std::vector<bool> seen(size_t(n_pages()), false);
  const auto see = [&](int32_t page) {
    BASCULE_CHECK_LE(0, page);
    BASCULE_CHECK_LT(page, n_pages());
    BASCULE_CHECK(!seen[page]);
    seen[page] = true;
  };
  for (const int32_t page : free_pages_) see(page);
  int64_t in_rows = 0;
  for (int32_t row = 0; row < options_.max_runs; ++row) {
    for (int64_t i = 0; i < pages_of_row_[row]; ++i) see(entries(row)[i]);
    in_rows += pages_of_row_[row];
  }
  BASCULE_CHECK_EQ(in_rows, n_held_);
}

}  // namespace bascule
