// How a launch finds the cached rows of a token's sequence: pages of a fixed number of token slots,
// named by a page table per sequence.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace bascule {

// One kind of row of one layer (latents, or indexer keys) in all pages of a rank's cache.
struct PagedCache {
  void* data = nullptr;  // row 0 of page 0
  Dtype dtype = Dtype::kF32;
  int64_t page_bytes = 0;  // from a page to the next; other layers lie between
  int64_t page_size = 0;   // token slots in a page
  int64_t width = 0;       // elements of a row

  void* row(int32_t page, int64_t slot) const {
    return static_cast<char*>(data) + int64_t{page} * page_bytes + slot * width * size_bytes(dtype);
  }
};

// All that page `from` holds is to be in page `to` too.
struct PageCopy {
  int32_t from = -1, to = -1;
};

// Where the tokens of a launch stand.
struct TokenPlaces {
  View<const int32_t, 1> position;    // [n_tokens] in its sequence, from 0
  View<const int32_t, 1> sequence;    // [n_tokens] row of page_table
  View<const int32_t, 2> page_table;  // [n_sequences, max_pages]: entry i is the page of positions
                                      // [page_size * i, page_size * (i + 1))

  // The row at `position` of the sequence that `token` belongs to.
  void* row(const PagedCache& cache, int64_t token, int64_t position) const {
    return cache.row(page_table(sequence(token), position / cache.page_size),
                     position % cache.page_size);
  }
};

}  // namespace bascule
