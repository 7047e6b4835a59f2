#include "tensor/dtype.h"

#include "base/check.h"

namespace bascule {
namespace {

struct Row {
  Dtype dtype;
  std::string_view name;
  int64_t size_bytes;
};

constexpr Row kTypes[] = {
    {Dtype::kF32, "F32", 4},        {Dtype::kBf16, "BF16", 2},      {Dtype::kF16, "F16", 2},
    {Dtype::kF8E4m3, "F8_E4M3", 1}, {Dtype::kF8E5m2, "F8_E5M2", 1}, {Dtype::kI64, "I64", 8},
    {Dtype::kI32, "I32", 4},        {Dtype::kI16, "I16", 2},        {Dtype::kI8, "I8", 1},
    {Dtype::kU8, "U8", 1},          {Dtype::kBool, "BOOL", 1},      {Dtype::kF8E8m0, "F8_E8M0", 1},
    {Dtype::kF64, "F64", 8},        {Dtype::kU64, "U64", 8},        {Dtype::kU32, "U32", 4},
    {Dtype::kU16, "U16", 2},
};

const Row& row(Dtype dtype) {
  for (const Row& r : kTypes)
    if (r.dtype == dtype) return r;
  check_failed(__FILE__, __LINE__, "every Dtype has a row", "");
}

}  // namespace

int64_t size_bytes(Dtype dtype) { return row(dtype).size_bytes; }
std::string_view name(Dtype dtype) { return row(dtype).name; }

std::optional<Dtype> dtype_from_name(std::string_view name) {
  for (const Row& r : kTypes)
    if (r.name == name) return r.dtype;
  return std::nullopt;
}

bool is_plain_float(Dtype dtype) {
  return dtype == Dtype::kF32 || dtype == Dtype::kBf16 || dtype == Dtype::kF16;
}

}  // namespace bascule
