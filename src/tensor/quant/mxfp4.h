// MXFP4 weights (OCP Microscaling Formats 1.0, 2023): 4-bit floats (E2M1) with one power of two
// (E8M0) for each 32 along a row, as AMD Quark stores them: two codes a byte, the even column in
// the low four bits. W[r, c] = e2m1(r, c) · 2^(scale[r, c / 32] - 127). The last group of a row may
// be cut.
#pragma once

#include <cstdint>

#include "tensor/view.h"

namespace bascule {

inline constexpr int64_t kMxfp4Group = 32;

constexpr int64_t mxfp4_groups(int64_t n_columns) {
  return (n_columns + kMxfp4Group - 1) / kMxfp4Group;
}
constexpr int64_t mxfp4_bytes(int64_t n_columns) {
  return (n_columns + 1) / 2;
}  // of a row's codes

// The value of a code: bit 3 is the sign, and the code of -0 is legal. Higher bits are ignored.
float e2m1_value(uint8_t code);

// 2^(code - 127): exact from 0 (a subnormal) to 254; 255 is NaN.
float e8m0_value(uint8_t code);

// The code of column c in a row of packed codes.
inline uint8_t mxfp4_code(const uint8_t* row, int64_t c) {
  return (row[c / 2] >> (c % 2 * 4)) & 15;
}

// codes [n_rows, mxfp4_bytes(n_columns)], scales [n_rows, mxfp4_groups(n_columns)], values
// [n_rows, n_columns]. Each value is exact, but for what a scale past 2^125 makes larger than any
// float: that is infinite.
void decode_mxfp4(View<const uint8_t, 2> codes, View<const uint8_t, 2> scales,
                  View<float, 2> values);

// How a group's scale follows from its largest magnitude A; 2^e is the scale, n = floor(log2 A).
enum class Mxfp4Scale : uint8_t {
  kEven,   // Quark's: A is rounded to two bits first, so e = n - 2, or n - 1 from 1.75 · 2^n on
  kFloor,  // OCP's: e = n - 2; magnitudes up to 8 · 2^e are cut to 6
  kCeil,   // e = ceil(log2 A) - 2; nothing is cut, and small values have fewer codes
};

// The E8M0 code of a group whose largest magnitude is `largest` (finite): from 1, which a group of
// zeros has too, to 254.
uint8_t mxfp4_scale(float largest, Mxfp4Scale rule);

// The nearest code, ties to the even one; past 6 it is that of 6. What rounds to zero has code 0,
// whatever its sign.
uint8_t e2m1_code(float x);

// The other way, as Quark 0.13 writes it. Values are finite; codes past the last column are 0.
void encode_mxfp4(View<const float, 2> values, Mxfp4Scale rule, View<uint8_t, 2> codes,
                  View<uint8_t, 2> scales);

}  // namespace bascule
