// Who holds which pages of the KV cache. A PageRun is the pages of one sequence, in order, and at
// the same time its row of the page table that kernels read: what is owned and what is addressed
// cannot come apart. Ids alone are dealt here; every rank of a data-parallel group has memory of
// its own under the same ids.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/buffer.h"
#include "tensor/view.h"

namespace bascule {

class PagePool;

// Move-only; gives its pages and its row back when it goes. The pool must outlive it.
class PageRun {
 public:
  PageRun() = default;
  PageRun(PageRun&& other) noexcept;
  PageRun& operator=(PageRun&& other) noexcept;
  ~PageRun();

  int32_t row() const { return row_; }  // of PagePool::table()
  int64_t n_pages() const { return n_pages_; }

 private:
  friend class PagePool;
  PagePool* pool_ = nullptr;
  int32_t row_ = -1;
  int64_t n_pages_ = 0;
};

// One thread's, the engine's. Nothing is allocated after construction.
class PagePool {
 public:
  struct Options {
    int64_t n_pages = 0;
    int64_t max_runs = 0;           // sequences that hold pages at one time
    int64_t max_pages_per_run = 0;  // of the longest sequence
  };
  static Result<PagePool> create(const Options& options);

  // For tests and debug builds: pages are filled with bytes that read as NaN in every float type,
  // now and whenever they are given back, so that a stale read shows. `memories` are the ranks'
  // pages, page 0 first.
  void poison_free_pages(std::span<std::byte* const> memories, int64_t page_bytes);

  bool can_open() const { return !free_rows_.empty(); }
  PageRun open();  // a row without pages; can_open() must hold

  // Adds pages at the end of the run; all of them, or none and false.
  bool extend(PageRun& run, int64_t n_pages);

  int64_t n_pages() const { return options_.n_pages; }
  int64_t n_free() const { return int64_t(free_pages_.size()); }
  int64_t n_held() const { return n_held_; }

  // [max_runs, max_pages_per_run]; entries past a run's pages mean nothing (-1 when poisoned).
  View<const int32_t, 2> table() const;

  // Stops the process unless free + held = all, each page is in one place, and every held page is
  // in a row. Linear in the pages.
  void audit() const;

 private:
  friend class PageRun;
  PagePool(const Options& options, Buffer table);
  void release(PageRun& run);
  void poison(int32_t page) const;
  std::span<int32_t> entries(int32_t row) const;

  Options options_;
  Buffer table_;                     // int32_t [max_runs, max_pages_per_run]
  std::vector<int32_t> free_pages_;  // the next to be dealt last
  std::vector<int32_t> free_rows_;
  int64_t n_held_ = 0;
  std::vector<int64_t> pages_of_row_;  // [max_runs], for the audit
  std::vector<std::byte*> poisoned_;   // page 0 of each rank
  int64_t page_bytes_ = 0;
};

}  // namespace bascule
