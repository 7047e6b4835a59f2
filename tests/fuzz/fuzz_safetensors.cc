// The safetensors header from arbitrary bytes: refused, or read so that the tensors are the whole
// file, in order, without a gap.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "format/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bascule;
  const auto header = parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
  if (!header.ok()) return 0;
  const auto& entries = header->entries;
  for (size_t i = 0; i < entries.size(); ++i) {
    const SafetensorsEntry& e = entries[i];
    const int64_t next =
        i + 1 < entries.size() ? entries[i + 1].offset : static_cast<int64_t>(size);
    BASCULE_CHECK_LE(8, e.offset);
    BASCULE_CHECK_EQ(e.offset + e.size_bytes, next);
    BASCULE_CHECK_EQ(e.offset % size_bytes(e.dtype), 0);
    int64_t n_bytes = size_bytes(e.dtype);
    for (const int64_t extent : e.shape)
      if (extent == 0) n_bytes = 0;
    for (const int64_t extent : e.shape) n_bytes *= n_bytes == 0 ? 1 : extent;
    BASCULE_CHECK_EQ(n_bytes, e.size_bytes);
  }
  return 0;
}
