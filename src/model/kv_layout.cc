#include "model/kv_layout.h"

#include "base/check.h"

namespace bascule {

KvLayout::KvLayout(const ModelConfig& config, Dtype dtype)
    : dtype_(dtype), d_latent_(config.d_latent()), d_index_(config.d_index) {
  const auto take = [&](int64_t width) {
    const int64_t offset = page_bytes_;
    page_bytes_ += (kPageSize * width * size_bytes(dtype) + 63) / 64 * 64;
    return offset;
  };
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    latent_offset_.push_back(take(d_latent_));
    index_offset_.push_back(config.owns_indexer[layer] ? take(d_index_) : -1);
  }
}

PagedCache KvLayout::at(void* base, int64_t offset, int64_t width) const {
  return {.data = static_cast<char*>(base) + offset,
          .dtype = dtype_,
          .page_bytes = page_bytes_,
          .page_size = kPageSize,
          .width = width};
}

PagedCache KvLayout::latents(void* base, int64_t layer) const {
  return at(base, latent_offset_[layer], d_latent_);
}

PagedCache KvLayout::index_keys(void* base, int64_t layer) const {
  BASCULE_CHECK_LE(0, index_offset_[layer]);
  return at(base, index_offset_[layer], d_index_);
}

}  // namespace bascule
