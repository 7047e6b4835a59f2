// Element types of tensors: their names in checkpoints, their width.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace bascule {

enum class Dtype : uint8_t {
  kF32,
  kBf16,
  kF16,
  kF8E4m3,  // OCP e4m3fn
  kF8E5m2,
  kF8E8m0,  // a power of two: scales
  kI64,
  kI32,
  kI16,
  kI8,
  kU8,
  kBool,
  // Seen in files, used by no weight:
  kF64,
  kU64,
  kU32,
  kU16,
};

// Bytes of one element; every type here is whole bytes (block formats store their codes as kU8).
int64_t size_bytes(Dtype dtype);

// As safetensors writes it: "BF16", "F32", ...
std::string_view name(Dtype dtype);
std::optional<Dtype> dtype_from_name(std::string_view name);

// Types whose every element is a number that to_float() reads: F32, BF16, F16.
bool is_plain_float(Dtype dtype);

}  // namespace bascule
