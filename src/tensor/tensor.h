// A look at memory whose element type is known only at run time: weights as the checkpoint stores
// them, activations and caches in the type the plan chose. Owns nothing.
#pragma once

#include <array>
#include <cstdint>

#include "base/check.h"
#include "tensor/bf16.h"
#include "tensor/dtype.h"
#include "tensor/view.h"

namespace bascule {

template <int Rank>
struct Tensor {
  void* data = nullptr;
  Dtype dtype = Dtype::kF32;
  std::array<int64_t, Rank> extent{};
  std::array<int64_t, Rank> stride{};  // in elements

  static Tensor packed(const void* data, Dtype dtype, std::array<int64_t, Rank> extent) {
    const auto shape = View<char, Rank>::packed(nullptr, extent);
    return {const_cast<void*>(data), dtype, extent, shape.stride};
  }

  template <typename T>
  static Tensor of(View<T, Rank> view);

  // As a view of T; the stored type must be T.
  template <typename T>
  View<T, Rank> as() const;

  // Bytes from the start to the element at `index` of the outermost axis.
  void* row(int64_t index) const {
    return static_cast<char*>(data) + index * stride[0] * size_bytes(dtype);
  }
  Tensor slice(int64_t first, int64_t count) const {
    Tensor t = *this;
    t.data = row(first);
    t.extent[0] = count;
    return t;
  }
  // [first, first + count) of the innermost axis.
  Tensor columns(int64_t first, int64_t count) const {
    Tensor t = *this;
    t.data = static_cast<char*>(data) + first * stride[Rank - 1] * size_bytes(dtype);
    t.extent[Rank - 1] = count;
    return t;
  }
  int64_t size() const {
    int64_t n = 1;
    for (const int64_t e : extent) n *= e;
    return n;
  }
  explicit operator bool() const { return data != nullptr; }
};

template <typename T>
constexpr Dtype dtype_of();
template <>
constexpr Dtype dtype_of<float>() {
  return Dtype::kF32;
}
template <>
constexpr Dtype dtype_of<bf16>() {
  return Dtype::kBf16;
}
template <>
constexpr Dtype dtype_of<f16>() {
  return Dtype::kF16;
}

template <int Rank>
template <typename T>
Tensor<Rank> Tensor<Rank>::of(View<T, Rank> view) {
  using Element = std::remove_const_t<T>;
  return {const_cast<Element*>(view.data), dtype_of<Element>(), view.extent, view.stride};
}

template <int Rank>
template <typename T>
View<T, Rank> Tensor<Rank>::as() const {
  BASCULE_CHECK(dtype == dtype_of<std::remove_const_t<T>>());
  return {static_cast<T*>(data), extent, stride};
}

// One element of a float type, wherever it lies. For reference rows and borders, not for hot loops.
inline float load(const void* data, Dtype dtype, int64_t index) {
  switch (dtype) {
    case Dtype::kF32:
      return static_cast<const float*>(data)[index];
    case Dtype::kBf16:
      return to_float(static_cast<const bf16*>(data)[index]);
    case Dtype::kF16:
      return to_float(static_cast<const f16*>(data)[index]);
    default:
      check_failed(__FILE__, __LINE__, "a plain float type", std::string(name(dtype)));
  }
}
inline void store(void* data, Dtype dtype, int64_t index, float value) {
  switch (dtype) {
    case Dtype::kF32:
      static_cast<float*>(data)[index] = value;
      return;
    case Dtype::kBf16:
      static_cast<bf16*>(data)[index] = to_bf16(value);
      return;
    default:
      check_failed(__FILE__, __LINE__, "F32 or BF16", std::string(name(dtype)));
  }
}

}  // namespace bascule
