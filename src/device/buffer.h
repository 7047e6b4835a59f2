// The owner of large memory. On the host: anonymous pages that the system provides when they are
// first touched, so that a cache may be reserved whole and costs what is used of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/status.h"

namespace bascule {

class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }
  ~Buffer();

  // Zeros, aligned to a page of the system. `what` names it in the error.
  static Result<Buffer> reserve(int64_t size_bytes, const char* what);

  std::byte* data() const { return data_; }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  Buffer(std::byte* data, int64_t size_bytes) : data_(data), size_bytes_(size_bytes) {}

  std::byte* data_ = nullptr;
  int64_t size_bytes_ = 0;
};

}  // namespace bascule
