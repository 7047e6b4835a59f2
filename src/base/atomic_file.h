// A new file that appears whole or not at all: bytes go to a temporary neighbour, commit() renames.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/status.h"

namespace bascule {

class AtomicFile {
 public:
  // Makes PATH.partial-<process id>; an old file at `path` stays until commit().
  static Result<AtomicFile> create(const std::filesystem::path& path);
  ~AtomicFile();  // without commit() the temporary file is removed
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  // Several threads may write different places at once. A full disk is kResourceExhausted.
  Status write_at(int64_t offset, const void* data, int64_t size);
  Status commit();  // to the disk, then under its name; once

 private:
  AtomicFile() = default;
  std::filesystem::path path_, temporary_;
  int fd_ = -1;
};

// Writes all of [data, data + size); `what` names the file in errors.
Status write_all_at(int fd, int64_t offset, const void* data, int64_t size,
                    const std::filesystem::path& what);

}  // namespace bascule
