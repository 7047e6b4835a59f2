// A paged cache for the tests: sequences whose pages lie in random order, with other bytes between.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/pages.h"

namespace bascule {

class TestPages {
 public:
  static constexpr int64_t kGapBytes = 48;  // after the rows of each page: another layer's

  // Every sequence has room for n_positions; rows are normal values.
  TestPages(int64_t n_sequences, int64_t n_positions, int64_t width, Dtype dtype,
            int64_t page_size = 5, uint32_t seed = 7)
      : n_sequences_(n_sequences), n_pages_((n_positions + page_size - 1) / page_size) {
    const int64_t row_bytes = width * size_bytes(dtype);
    bytes_.assign(size_t(n_sequences * n_pages_ * (page_size * row_bytes + kGapBytes)), 0xff);
    cache_ = {.data = bytes_.data(),
              .dtype = dtype,
              .page_bytes = page_size * row_bytes + kGapBytes,
              .page_size = page_size,
              .width = width};
    table_.resize(size_t(n_sequences * n_pages_));
    std::iota(table_.begin(), table_.end(), 0);
    std::mt19937 engine(seed);
    std::shuffle(table_.begin(), table_.end(), engine);
    std::normal_distribution<float> normal;
    for (int32_t page = 0; page < int32_t(table_.size()); ++page)
      for (int64_t i = 0; i < page_size * width; ++i)
        store(cache_.row(page, 0), dtype, i, normal(engine));
  }

  const PagedCache& cache() const { return cache_; }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

  // Token t stands at `position[t]` of `sequence[t]`.
  TokenPlaces places(const std::vector<int32_t>& position, const std::vector<int32_t>& sequence) {
    return {View<const int32_t, 1>::packed(position.data(), {int64_t(position.size())}),
            View<const int32_t, 1>::packed(sequence.data(), {int64_t(sequence.size())}),
            View<const int32_t, 2>::packed(table_.data(), {n_sequences_, n_pages_})};
  }
  void* row(int64_t sequence, int64_t position) const {
    return cache_.row(table_[size_t(sequence * n_pages_ + position / cache_.page_size)],
                      position % cache_.page_size);
  }

 private:
  int64_t n_sequences_, n_pages_;
  std::vector<uint8_t> bytes_;
  std::vector<int32_t> table_;
  PagedCache cache_;
};

}  // namespace bascule
