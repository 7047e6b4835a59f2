#include "device/buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace bascule {

Buffer::~Buffer() {
  if (data_) munmap(data_, size_t(size_bytes_));
}

Result<Buffer> Buffer::reserve(int64_t size_bytes, const char* what) {
  if (size_bytes == 0) return Buffer();
  void* const data = mmap(nullptr, size_t(size_bytes), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    return resource_exhausted(fmt::format("{}: the system gives no {} bytes ({})", what, size_bytes,
                                          std::strerror(errno)));
  return Buffer(static_cast<std::byte*>(data), size_bytes);
}

}  // namespace bascule
