// Writes of a step's rows into the pages of their sequences.
#pragma once

#include "kernels/kernel.h"
#include "kernels/pages.h"

namespace bascule {

// The cache's row at token t's position = x[t], in the cache's type.
struct CacheWrite {
  static constexpr std::string_view kName = "cache_write";
  View<const float, 2> x;  // [n_tokens, width]
  PagedCache cache;
  TokenPlaces places;

  int64_t n_tokens() const { return x.extent[0]; }
  Cost cost() const;
};

}  // namespace bascule
