#include "tensor/quant/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tensor/quant/fp8_block.h"
#include "tensor/quant/fp8_row.h"
#include "tensor/quant/mxfp4.h"

namespace bascule {
namespace {

// The largest magnitude; NaN where one is NaN or infinite.
float largest_of(const float* x, int64_t n) {
  float largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < n; ++i) {
    finite = finite && std::isfinite(x[i]);
    largest = std::max(largest, std::abs(x[i]));
  }
  return finite ? largest : std::numeric_limits<float>::quiet_NaN();
}

// As the int8 rows of kernels/cpu do it: a product with the reciprocal, ties to even.
void round_int8(const float* x, int64_t n, float largest, float* y) {
  const float scale = largest / 127, reciprocal = largest == 0 ? 0 : 127 / largest;
  for (int64_t i = 0; i < n; ++i) y[i] = std::nearbyint(x[i] * reciprocal) * scale;
}

void round_fp8(const float* x, int64_t n, float scale, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = fp8_e4m3_value(fp8_e4m3_code(x[i] / scale)) * scale;
}

void round_mxfp4(const float* x, int64_t n, float largest, float* y) {
  const float scale = e8m0_value(mxfp4_scale(largest, Mxfp4Scale::kEven));
  for (int64_t i = 0; i < n; ++i) y[i] = e2m1_value(e2m1_code(x[i] / scale)) * scale;
}

void round_group(Rounding rounding, const float* x, int64_t n, float* y) {
  const float largest = largest_of(x, n);
  if (std::isnan(largest)) {
    std::fill_n(y, n, largest);
  } else if (rounding == Rounding::kInt8) {
    round_int8(x, n, largest, y);
  } else if (rounding == Rounding::kFp8Groups) {
    round_fp8(x, n, std::max(largest, 1e-4f) / kFp8Largest, y);
  } else if (rounding == Rounding::kFp8Token) {
    round_fp8(x, n, fp8_row_scale(largest), y);
  } else {
    round_mxfp4(x, n, largest, y);
  }
}

int64_t group_of(Rounding rounding, int64_t n) {
  if (rounding == Rounding::kFp8Token) return n;
  return rounding == Rounding::kFp8Groups ? kFp8Block : kInt8Group;
}

}  // namespace

std::string_view name(Rounding rounding) {
  switch (rounding) {
    case Rounding::kNone:
      return "";
    case Rounding::kInt8:
      return "int8";
    case Rounding::kFp8Groups:
      return "fp8 groups";
    case Rounding::kFp8Token:
      return "fp8 token";
    case Rounding::kMxfp4:
      return "mxfp4";
  }
  return "unknown";
}

void round_row(Rounding rounding, const float* x, int64_t n, float* y) {
  if (rounding == Rounding::kNone) {
    std::copy_n(x, n, y);
    return;
  }
  const int64_t group = group_of(rounding, n);
  for (int64_t i = 0; i < n; i += group)
    round_group(rounding, x + i, std::min(group, n - i), y + i);
}

}  // namespace bascule
