// A shaped look at memory that somebody else owns. Host and device alike; copies freely; never
// frees.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace bascule {

template <typename T, int Rank>
struct View {
  T* data = nullptr;
  std::array<int64_t, Rank> extent{};  // elements along each axis, outermost first
  std::array<int64_t, Rank> stride{};  // elements between neighbours along each axis

  // Contiguous in every axis.
  static View packed(T* data, std::array<int64_t, Rank> extent) {
    View v{data, extent, {}};
    int64_t step = 1;
    for (int axis = Rank; axis-- > 0; step *= extent[axis]) v.stride[axis] = step;
    return v;
  }

  template <typename... Index>
  T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == Rank, "one index an axis");
    int64_t offset = 0;
    int axis = 0;
    ((offset += stride[axis++] * static_cast<int64_t>(index)), ...);
    return data[offset];
  }

  // The part at `i` of the outermost axis.
  View<T, Rank - 1> operator[](int64_t i) const {
    static_assert(Rank > 1, "index the last axis by operator()");
    View<T, Rank - 1> v{data + i * stride[0], {}, {}};
    for (int axis = 1; axis < Rank; ++axis) {
      v.extent[axis - 1] = extent[axis];
      v.stride[axis - 1] = stride[axis];
    }
    return v;
  }

  // [first, first + count) of the outermost axis.
  View slice(int64_t first, int64_t count) const {
    View v = *this;
    v.data += first * stride[0];
    v.extent[0] = count;
    return v;
  }

  // [first, first + count) of the innermost axis.
  View columns(int64_t first, int64_t count) const {
    View v = *this;
    v.data += first * stride[Rank - 1];
    v.extent[Rank - 1] = count;
    return v;
  }

  int64_t size() const {
    int64_t n = 1;
    for (const int64_t e : extent) n *= e;
    return n;
  }

  explicit operator bool() const { return data != nullptr; }
  operator View<const T, Rank>() const { return {data, extent, stride}; }  // NOLINT
};

}  // namespace bascule
