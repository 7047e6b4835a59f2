// What a page of the cache holds: for each layer the latent rows of its token slots, and for each
// layer with an indexer the keys too. One page is one run of bytes, so that everything about its
// tokens is freed, moved and checked together.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/pages.h"
#include "model/config.h"

namespace bascule {

class KvLayout {
 public:
  static constexpr int64_t kPageSize = 16;  // tokens of a page

  KvLayout(const ModelConfig& config, Dtype dtype);

  int64_t page_bytes() const { return page_bytes_; }
  int64_t token_bytes() const { return page_bytes_ / kPageSize; }
  Dtype dtype() const { return dtype_; }
  static int64_t pages_for(int64_t n_tokens) { return (n_tokens + kPageSize - 1) / kPageSize; }

  // Rows of `layer` in pages that begin at `base`.
  PagedCache latents(void* base, int64_t layer) const;
  PagedCache index_keys(void* base, int64_t layer) const;  // the layer must own an indexer

 private:
  PagedCache at(void* base, int64_t offset, int64_t width) const;

  Dtype dtype_;
  int64_t d_latent_, d_index_;
  std::vector<int64_t> latent_offset_, index_offset_;  // [n_layers]; index -1: none
  int64_t page_bytes_ = 0;
};

}  // namespace bascule
