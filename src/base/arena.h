// Bump allocation over bytes that somebody else owns. With no bytes it only measures, so that one
// function both sizes and lays out a set of buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace bascule {

class Arena {
 public:
  struct Entry {
    std::string_view name;  // a literal
    int64_t offset_bytes, size_bytes;
  };

  Arena() = default;  // measures
  Arena(void* base, int64_t size_bytes)
      : base_(static_cast<std::byte*>(base)), size_bytes_(size_bytes) {}

  // 64-byte aligned; null while measuring.
  void* take(std::string_view name, int64_t size_bytes) {
    const int64_t offset = used_bytes_;
    used_bytes_ += (size_bytes + 63) / 64 * 64;
    entries_.push_back({name, offset, size_bytes});
    if (!base_) return nullptr;
    BASCULE_CHECK_LE(used_bytes_, size_bytes_);
    return base_ + offset;
  }

  int64_t used_bytes() const { return used_bytes_; }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::byte* base_ = nullptr;
  int64_t size_bytes_ = 0, used_bytes_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace bascule
