// What the tests of all ops share: matrices with guarded borders, every row that this machine runs,
// and one comparison with one table of tolerances.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/threads.h"
#include "kernels/registry.h"
#include "tensor/quant/mxfp4_tiles.h"

namespace bascule {

// How far a fast row may be from the reference, which sums in double: as a share of the largest
// value that the op gives.
struct Tolerance {
  Dtype stored;
  double of_largest;
};
inline constexpr Tolerance kTolerances[] = {
    {Dtype::kF32, 4e-6},   // sums of a few thousand products in float
    {Dtype::kBf16, 4e-3},  // one rounding to 8 bits, which may fall to the other side
};
inline double tolerance_of(Dtype stored) {
  for (const Tolerance& t : kTolerances)
    if (t.stored == stored) return t.of_largest;
  ADD_FAILURE() << "no tolerance for " << name(stored);
  return 0;
}

inline const std::vector<int64_t> kOddSizes = {1, 2, 3, 7, 8, 9, 31, 33, 63, 64, 65, 127, 255, 257};
inline const std::vector<int64_t> kTokensOfEveryBand = {1, 2, 4, 5, 16, 17, 64, 65, 256, 300};

// A matrix whose rows lie apart. What a row of it doesn't own is poison and must stay so.
class Matrix {
 public:
  static constexpr int64_t kGap = 5;  // elements between rows, and around all of them

  Matrix(int64_t n_rows, int64_t n_columns, Dtype dtype = Dtype::kF32)
      : n_rows_(n_rows),
        n_columns_(n_columns),
        dtype_(dtype),
        bytes_(size_t((n_rows * stride() + kGap) * size_bytes(dtype)), kPoison) {}

  // Normal values, rounded to the stored type.
  static Matrix random(int64_t n_rows, int64_t n_columns, Dtype dtype, uint32_t seed,
                       float scale = 1) {
    Matrix m(n_rows, n_columns, dtype);
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal(0, scale);
    for (int64_t i = 0; i < n_rows; ++i)
      for (int64_t j = 0; j < n_columns; ++j) m.set(i, j, normal(engine));
    return m;
  }

  int64_t n_rows() const { return n_rows_; }
  int64_t n_columns() const { return n_columns_; }
  Dtype dtype() const { return dtype_; }

  Tensor<2> tensor() {
    return {
        bytes_.data() + kGap * size_bytes(dtype_), dtype_, {n_rows_, n_columns_}, {stride(), 1}};
  }
  template <typename T>
  View<T, 2> view() {
    Tensor<2> t = tensor();
    return {static_cast<T*>(t.data), t.extent, t.stride};
  }
  float operator()(int64_t i, int64_t j) const {
    return load(bytes_.data() + kGap * size_bytes(dtype_), dtype_, i * stride() + j);
  }
  void set(int64_t i, int64_t j, float v) {
    void* data = bytes_.data() + kGap * size_bytes(dtype_);
    if (dtype_ == Dtype::kF16) {
      static_cast<f16*>(data)[i * stride() + j] = to_f16(v);
    } else {
      store(data, dtype_, i * stride() + j, v);
    }
  }

  // Everything between and around the rows is as it was made.
  bool borders_are_untouched() const {
    const int64_t width = n_columns_ * size_bytes(dtype_), step = stride() * size_bytes(dtype_);
    const int64_t gap = kGap * size_bytes(dtype_);
    for (int64_t i = 0; i < int64_t(bytes_.size()); ++i) {
      const bool inside = i >= gap && (i - gap) % step < width && i - gap < n_rows_ * step;
      if (!inside && bytes_[size_t(i)] != kPoison) return false;
    }
    return true;
  }
  bool same_bits(const Matrix& other) const { return bytes_ == other.bytes_; }

 private:
  static constexpr uint8_t kPoison = 0xff;  // NaN in every float type, -1 in every integer

  // Finite normal values only: nothing here needs more.
  static f16 to_f16(float v) {
    const float magnitude = std::abs(v);
    if (magnitude < 0x1p-14f) return {0};
    int exponent;
    const float fraction = std::frexp(magnitude, &exponent);  // in [0.5, 1)
    const uint16_t mantissa = uint16_t(uint32_t(fraction * 2048) & 1023);
    return {uint16_t((v < 0 ? 0x8000 : 0) | ((exponent + 14) << 10) | mantissa)};
  }
  int64_t stride() const { return n_columns_ + kGap; }

  int64_t n_rows_, n_columns_;
  Dtype dtype_;
  std::vector<uint8_t> bytes_;
};

// A weight in any format, its rows apart; what lies between them reads as large numbers or NaN.
class StoredWeight {
 public:
  // Plain values are normal, times plain_scale; else any code but NaN, with scales near 2^-3.
  StoredWeight(int64_t n_out, int64_t n_in, WeightFormat format, uint32_t seed,
               float plain_scale = 1) {
    if (is_plain(format)) {
      const Dtype types[] = {Dtype::kF32, Dtype::kBf16, Dtype::kF16};
      plain_.push_back(Matrix::random(n_out, n_in, types[int(format)], seed, plain_scale));
      weight_ = plain_[0].tensor();
      return;
    }
    if (format == WeightFormat::kMxfp4Tiles) {
      make_tiles(n_out, n_in, seed);
      return;
    }
    weight_ = WeightMatrix::packed(format, nullptr, nullptr, n_out, n_in);
    weight_.row_stride += kGapBytes;
    weight_.scale_stride += kGapBytes;
    const bool is_mxfp4 = format == WeightFormat::kMxfp4;
    const int64_t n_scale_rows = format == WeightFormat::kFp8Blocks ? (n_out + 127) / 128 : n_out;
    std::mt19937 engine(seed);
    codes_ = rows(n_out, row_bytes(format, n_in), weight_.row_stride, [&] {
      const uint8_t code = uint8_t(engine());
      return is_mxfp4 || (code & 0x7f) != 0x7f ? code : uint8_t(code ^ 0x40);
    });
    const int64_t n_scales = scale_bytes(format, n_in) / (is_mxfp4 ? 1 : 4);
    scales_ = rows(n_scale_rows, scale_bytes(format, n_in), weight_.scale_stride,
                   [&] { return uint8_t(120 + engine() % 10); });
    if (!is_mxfp4)
      for (int64_t r = 0; r < n_scale_rows; ++r)
        for (int64_t i = 0; i < n_scales; ++i) {
          const float scale = float(0.003 + double(engine() % 1000) * 1e-5);
          std::memcpy(scales_.data() + r * weight_.scale_stride + i * 4, &scale, 4);
        }
    weight_.codes = codes_.data();
    weight_.scales = scales_.data();
  }
  const WeightMatrix& operator*() const { return weight_; }
  Matrix& plain() { return plain_.at(0); }
  uint8_t& code_byte(int64_t r, int64_t i) { return codes_[size_t(r * weight_.row_stride + i)]; }
  uint8_t& scale_byte(int64_t r, int64_t i) {
    return scales_[size_t(r * weight_.scale_stride + i)];
  }

 private:
  static constexpr int64_t kGapBytes = 12;

  void make_tiles(int64_t n_out, int64_t n_in, uint32_t seed) {
    const StoredWeight rows(n_out, n_in, WeightFormat::kMxfp4, seed);
    const WeightMatrix& from = rows.weight_;
    const int64_t n_tiles = tiles_of(n_out), n_groups = (n_in + 31) / 32;
    codes_.resize(size_t(n_tiles * n_groups * 128));
    scales_.resize(size_t(n_tiles * n_groups * 8));
    tile_mxfp4(
        {static_cast<const uint8_t*>(from.codes),
         {n_out, row_bytes(from.format, n_in)},
         {from.row_stride, 1}},
        {static_cast<const uint8_t*>(from.scales), {n_out, n_groups}, {from.scale_stride, 1}}, n_in,
        0, n_tiles, View<uint8_t, 2>::packed(codes_.data(), {n_tiles, n_groups * 128}),
        View<uint8_t, 2>::packed(scales_.data(), {n_tiles, n_groups * 8}));
    weight_ =
        WeightMatrix::packed(WeightFormat::kMxfp4Tiles, codes_.data(), scales_.data(), n_out, n_in);
  }

  template <typename Next>
  static std::vector<uint8_t> rows(int64_t n_rows, int64_t width, int64_t stride, Next next) {
    std::vector<uint8_t> bytes(size_t(n_rows * stride), 0xff);
    for (int64_t r = 0; r < n_rows; ++r)
      for (int64_t i = 0; i < width; ++i) bytes[size_t(r * stride + i)] = next();
    return bytes;
  }

  std::vector<Matrix> plain_;
  std::vector<uint8_t> codes_, scales_;
  WeightMatrix weight_;
};

inline const std::vector<WeightFormat> kWeightFormats = {
    WeightFormat::kF32,       WeightFormat::kBf16,    WeightFormat::kF16,
    WeightFormat::kFp8Blocks, WeightFormat::kFp8Rows, WeightFormat::kMxfp4};

// The same places are NaN and infinite; the others within the tolerance of what is stored; and the
// directions agree.
inline void expect_close(const Matrix& actual, const Matrix& expected, const std::string& what) {
  double largest = 0, worst = -1, product = 0, actual_square = 0, expected_square = 0;
  int64_t row = 0, column = 0;
  for (int64_t i = 0; i < expected.n_rows(); ++i) {
    for (int64_t j = 0; j < expected.n_columns(); ++j) {
      const double a = actual(i, j), e = expected(i, j);
      ASSERT_EQ(std::isnan(a), std::isnan(e)) << what << " at " << i << ", " << j << ": " << a;
      if (std::isnan(e)) continue;
      if (std::isinf(a) || std::isinf(e)) {
        ASSERT_EQ(a, e) << what << " at " << i << ", " << j;
        continue;
      }
      largest = std::max(largest, std::abs(e));
      product += a * e;
      actual_square += a * a;
      expected_square += e * e;
      if (std::abs(a - e) <= worst) continue;
      worst = std::abs(a - e);
      row = i;
      column = j;
    }
  }
  ASSERT_LE(worst, tolerance_of(expected.dtype()) * largest)
      << what << ": worst at " << row << ", " << column << ": " << actual(row, column)
      << " against " << expected(row, column) << ", the largest is " << largest;
  const double norms = std::sqrt(actual_square * expected_square);
  ASSERT_GE(product, (1 - 1e-4) * norms) << what << ": cosine";
}

// Rows of an op that accept it on this machine, the reference first.
template <typename Op>
std::vector<const Kernel<Op>*> rows_for(const Op& op, const Machine& machine = Machine::detect()) {
  std::vector<const Kernel<Op>*> rows;
  for (const Kernel<Op>& row : registry().rows<Op>())
    if (!row.refuses || !row.refuses(op, machine)) rows.push_back(&row);
  return rows;
}

// Runs a row on its own threads, with the scratch that it asked for and no more.
template <typename Op>
void run_row(const Kernel<Op>& row, const Op& op, int n_threads = 2) {
  Threads threads({.count = n_threads,
                   .scratch_bytes = row.scratch_bytes ? row.scratch_bytes(op) : 0,
                   .shared_bytes = row.shared_bytes ? row.shared_bytes(op) : 0,
                   .spin_us = 1});
  Stream stream{&threads};
  row.launch(op, stream);
}

}  // namespace bascule
