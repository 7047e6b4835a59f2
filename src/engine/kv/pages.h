// Who holds which pages of the KV cache. A PageRun is the pages of one sequence, in order, and at
// the same time its row of the page table that kernels read: what is owned and what is addressed
// cannot come apart. Ids alone are dealt here; every rank of a data-parallel group has memory of
// its own under the same ids.
//
// Several runs may hold one page, if it is kept: its rows don't change any more. A kept page that
// nobody holds is idle, until a run holds it again or it is dropped. Idle pages stand in the order
// in which they were left, and a run leaves its last page first: where runs hold whole paths of a
// tree, the oldest idle page is a leaf.
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

// Move-only; one page that must not be dropped, without a place in a sequence.
class PageHold {
 public:
  PageHold() = default;
  PageHold(PageHold&& other) noexcept;
  PageHold& operator=(PageHold&& other) noexcept;
  ~PageHold();

  bool is_empty() const { return pool_ == nullptr; }
  int32_t page() const { return page_; }

 private:
  friend class PagePool;
  PagePool* pool_ = nullptr;
  int32_t page_ = -1;
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

  // Adds free pages at the end of the run; all of them, or none and false.
  bool extend(PageRun& run, int64_t n_pages);

  // A page of a run stays when the last run leaves it.
  void keep(int32_t page);
  void share(PageRun& run, int32_t page);               // adds a kept page at the end of the run
  void replace(PageRun& run, int64_t i, int32_t page);  // by a kept one with the same rows
  PageHold hold(int32_t page);                          // a kept one
  int32_t oldest_idle() const;                          // -1: none
  void drop(int32_t page);                              // an idle one: it is free then

  int64_t n_pages() const { return options_.n_pages; }
  int64_t n_free() const { return int64_t(free_pages_.size()); }
  int64_t n_held() const { return n_held_; }
  int64_t n_kept() const { return n_kept_; }  // idle or held
  int64_t n_idle() const { return n_pages() - n_free() - n_held(); }
  bool is_idle(int32_t page) const { return is_kept_[page] && n_holders_[page] == 0; }
  int32_t page_of(const PageRun& run, int64_t i) const { return entries(run.row_)[i]; }

  // [max_runs, max_pages_per_run]; entries past a run's pages mean nothing (-1 when poisoned).
  View<const int32_t, 2> table() const;

  // Stops the process unless each page is free, idle or held, and every held page is in as many
  // rows as it has holders. Linear in the pages.
  void audit() const;

 private:
  friend class PageRun;
  friend class PageHold;
  PagePool(const Options& options, Buffer table);
  void release(PageRun& run);
  void add_holder(int32_t page);
  void remove_holder(int32_t page);
  void set_free(int32_t page);
  void append(PageRun& run, int32_t page);
  void poison(int32_t page) const;
  std::span<int32_t> entries(int32_t row) const;

  Options options_;
  Buffer table_;                     // int32_t [max_runs, max_pages_per_run]
  std::vector<int32_t> free_pages_;  // the next to be dealt last
  std::vector<int32_t> free_rows_;
  std::vector<int32_t> n_holders_;  // [n_pages]: runs and holds
  std::vector<bool> is_kept_;       // [n_pages]
  int64_t n_held_ = 0;              // pages with a holder
  int64_t n_kept_ = 0;
  // The idle pages as a ring; entry n_pages is where it begins and ends.
  std::vector<int32_t> idle_before_, idle_after_;  // [n_pages + 1]
  int64_t n_holds_ = 0;                            // PageHolds, for the audit
  std::vector<int64_t> pages_of_row_;              // [max_runs], for the audit
  std::vector<std::byte*> poisoned_;               // page 0 of each rank
  int64_t page_bytes_ = 0;
};

}  // namespace bascule
