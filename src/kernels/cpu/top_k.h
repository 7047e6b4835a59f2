// The k largest of many floats, exactly and in one order whatever the data: ties go to the lowest
// index, -0 equals +0, NaN is below everything.
#pragma once

#include <cstdint>

namespace bascule::cpu {

inline constexpr int64_t kTopKCounts = 1 << 11;  // that the caller lends to top_k

// Writes min(n, k) ascending indices, in time linear in n.
void top_k(const float* scores, int64_t n, int64_t k, int32_t* out, uint32_t* counts);

}  // namespace bascule::cpu
