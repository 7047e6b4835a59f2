// By radix: floats become integers of the same order; three passes of 11, 11 and 10 bits, each over
// the candidates that the last one left, find the k-th largest; a last pass takes everything above
// it, and of its equals the first ones. No data fills a buffer or makes a pass longer.
#include "kernels/cpu/top_k.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace bascule::cpu {
namespace {

// Larger for a larger float; 0 for NaN.
uint32_t image_of(float score) {
  if (score != score) return 0;
  const uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 + 0 is +0
  return bits & 0x80000000 ? ~bits : bits | 0x80000000;
}

struct Threshold {
  uint32_t image;   // of the k-th largest
  int64_t n_equal;  // how many of its equals belong to the k
};

Threshold find_threshold(const float* scores, int64_t n, int64_t k, uint32_t* counts) {
  constexpr int kShifts[] = {21, 10, 0}, kBits[] = {11, 11, 10};
  uint32_t found = 0, known = 0;  // the leading bits of the threshold, and which they are
  for (int pass = 0; pass < 3; ++pass) {
    const int shift = kShifts[pass];
    const uint32_t mask = (1u << kBits[pass]) - 1;
    std::fill_n(counts, mask + 1, 0);
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t image = image_of(scores[i]);
      if ((image & known) == found) ++counts[(image >> shift) & mask];
    }
    uint32_t digit = mask;
    for (; counts[digit] < k; --digit) k -= counts[digit];
    found |= digit << shift;
    known |= mask << shift;
  }
  return {found, k};
}

}  // namespace

void top_k(const float* scores, int64_t n, int64_t k, int32_t* out, uint32_t* counts) {
  if (n <= k) {
    std::iota(out, out + n, 0);
    return;
  }
  if (k <= 0) return;
  Threshold threshold = find_threshold(scores, n, k, counts);
  for (int64_t i = 0, taken = 0; taken < k; ++i) {
    const uint32_t image = image_of(scores[i]);
    const bool equal = image == threshold.image;
    if (image < threshold.image || (equal && threshold.n_equal-- <= 0)) continue;
    out[taken++] = int32_t(i);
  }
}

}  // namespace bascule::cpu
