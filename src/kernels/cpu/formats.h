// How a row of weights is read in each format: some vectors of floats at a time, its columns in
// order, each weight the float that its scalar decoder gives (tensor/quant). So a sum is the same
// whether a format's codes meet the tokens as they come from memory or are widened first.
#pragma once

#include "kernels/cpu/loops.h"
#include "kernels/cpu/simd.h"

namespace bascule::cpu {
namespace {

// Room for the columns of one read.
struct Room {
  alignas(64) char bytes[64];
};

template <typename T>
struct PlainRow {
  static constexpr int64_t kLine = 64 / sizeof(T);  // columns of a cache line
  template <class V>
  static constexpr int kVectors = 1;  // that a read gives

  const T* values;

  [[gnu::always_inline]] PlainRow() = default;
  [[gnu::always_inline]] PlainRow(const void* codes, const void*)
      : values(static_cast<const T*>(codes)) {}
  [[gnu::always_inline]] const void* address(int64_t k) const { return values + k; }
  template <class V>
  [[gnu::always_inline]] void read(int64_t k, typename V::Float (&out)[1]) const {
    out[0] = V::load(values + k);
  }
  // A row of columns [k, k + n), fewer than a read takes, with zeros after them.
  [[gnu::always_inline]] PlainRow cut(int64_t k, int64_t n, Room& room) const {
    __builtin_memset(&room, 0, sizeof(room));
    __builtin_memcpy(room.bytes, values + k, size_t(n) * sizeof(T));
    return {room.bytes, nullptr};
  }
};

// E4M3 codes with a float for each kGroup columns.
template <int64_t kGroup>
struct Fp8Row {
  static constexpr int64_t kLine = 64, kRead = 32;
  template <class V>
  static constexpr int kVectors = kRead / V::kLanes;

  const uint8_t* codes;
  const float* scales;

  [[gnu::always_inline]] Fp8Row() = default;
  [[gnu::always_inline]] Fp8Row(const void* codes_of_row, const void* scales_of_row)
      : codes(static_cast<const uint8_t*>(codes_of_row)),
        scales(static_cast<const float*>(scales_of_row)) {}
  [[gnu::always_inline]] const void* address(int64_t k) const { return codes + k; }
  template <class V>
  [[gnu::always_inline]] void read(int64_t k, typename V::Float (&out)[kVectors<V>]) const {
    V::read_e4m3(codes + k, scales[k / kGroup], out);
  }
  [[gnu::always_inline]] Fp8Row cut(int64_t k, int64_t n, Room& room) const {
    __builtin_memset(&room, 0, sizeof(room));
    __builtin_memcpy(room.bytes, codes + k, size_t(n));
    return {room.bytes, scales + k / kGroup};
  }
};
using Fp8BlockRow = Fp8Row<128>;
using Fp8WholeRow = Fp8Row<INT64_MAX>;

// The value of an E8M0 code: a power of two, exact also below the normal floats; 255 is NaN.
[[gnu::always_inline]] inline float e8m0(uint8_t code) {
  const uint32_t special = uint8_t(code + 1) < 2;
  const uint32_t bits = (uint32_t{code} << 23) | (special << 22);
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

struct Mxfp4Row {
  static constexpr int64_t kLine = 128, kRead = 32;
  template <class V>
  static constexpr int kVectors = kRead / V::kLanes;

  const uint8_t* codes;
  const uint8_t* scales;

  [[gnu::always_inline]] Mxfp4Row() = default;
  [[gnu::always_inline]] Mxfp4Row(const void* codes_of_row, const void* scales_of_row)
      : codes(static_cast<const uint8_t*>(codes_of_row)),
        scales(static_cast<const uint8_t*>(scales_of_row)) {}
  [[gnu::always_inline]] const void* address(int64_t k) const { return codes + k / 2; }
  template <class V>
  [[gnu::always_inline]] void read(int64_t k, typename V::Float (&out)[kVectors<V>]) const {
    V::read_e2m1(codes + k / 2, e8m0(scales[k / kRead]), out);
  }
  [[gnu::always_inline]] Mxfp4Row cut(int64_t k, int64_t n, Room& room) const {
    __builtin_memset(&room, 0, sizeof(room));
    __builtin_memcpy(room.bytes, codes + k / 2, size_t(n + 1) / 2);
    if (n % 2 == 1) room.bytes[n / 2] &= 15;
    return {room.bytes, scales + k / kRead};
  }
};

// f(Row{}) with Row the reader of a format.
template <typename F>
[[gnu::always_inline]] inline void with_format(WeightFormat format, F&& f) {
  switch (format) {
    case WeightFormat::kF32:
      return f(PlainRow<float>{});
    case WeightFormat::kBf16:
      return f(PlainRow<bf16>{});
    case WeightFormat::kF16:
      return f(PlainRow<f16>{});
    case WeightFormat::kFp8Blocks:
      return f(Fp8BlockRow{});
    case WeightFormat::kFp8Rows:
      return f(Fp8WholeRow{});
    case WeightFormat::kMxfp4:
      return f(Mxfp4Row{});
    case WeightFormat::kMxfp4Tiles:
      return;  // refused (products.h): rows in tiles aren't read one by one
  }
}

}  // namespace
}  // namespace bascule::cpu
