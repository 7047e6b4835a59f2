// A read-only mapping of a whole file. Weights are read where the kernel's page cache holds them.
//
// A file that shrinks while it is mapped takes its pages away: the next touch of one is SIGBUS, and
// no value can be invented for it. The first open installs a handler that says on stderr which file
// it was and ends the process with status 74 (EX_IOERR); a SIGBUS elsewhere goes to whatever
// handled it before. Carrying on is not possible: any weight may be half gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/status.h"

namespace bascule {

enum class Access { kNormal, kSequential, kRandom, kWillNeed, kDontNeed };

class MappedFile {
 public:
  // Follows links. Anything but a regular file is refused (opening a pipe would wait for ever).
  static Result<MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }  // page-aligned start

  // Tells the kernel how [offset, offset + size) will be read. A hint: failure changes nothing.
  void advise(Access access, int64_t offset, int64_t size) const;

 private:
  struct Record;  // what the signal handler may read
  MappedFile() = default;
  static Record* publish(const std::byte* data, size_t size, const std::filesystem::path& path);

  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  Record* record_ = nullptr;
};

}  // namespace bascule
