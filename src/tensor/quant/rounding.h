// What a product's inputs may be rounded to beside their own type: the activations of a scheme like
// W4A8. Groups lie along a row from its first column; the last may be short.
#pragma once

#include <cstdint>
#include <string_view>

namespace bascule {

enum class Rounding : uint8_t {
  kNone,
  kInt8,       // q · s a group of 32: s = max|x| / 127, q = x / s to the nearest even integer
  kFp8Groups,  // e4m3 · s a group of 128: s = max(max|x|, 1e-4) / 448, as DeepSeek's kernels do
  kFp8Token,   // e4m3 · s a row: s = max(max|x| / 448, 2^-23), as Quark's ptpc_fp8
  kMxfp4,      // e2m1 · 2^e a group of 32, as Quark's weights
};

std::string_view name(Rounding rounding);  // "int8", "fp8 groups", ...; empty for none

inline constexpr int64_t kInt8Group = 32;

// y[n] = the values that x[n] is rounded to; y may be x. NaN and infinity stay visible: their group
// becomes NaN.
void round_row(Rounding rounding, const float* x, int64_t n, float* y);

}  // namespace bascule
