#include "base/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace bascule {
namespace {

Status failed(const std::filesystem::path& path, std::string_view what) {
  const int error = errno;
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return {full              ? Code::kResourceExhausted
          : error == ENOENT ? Code::kNotFound
                            : Code::kInternal,
          fmt::format("{}: {}: {}", path.string(), what, strerror(error))};
}

}  // namespace

Status write_all_at(int fd, int64_t offset, const void* data, int64_t size,
                    const std::filesystem::path& what) {
  const char* from = static_cast<const char*>(data);
  for (int64_t done = 0; done < size;) {
    // Linux moves at most 2 GiB a call.
    const auto piece = static_cast<size_t>(std::min<int64_t>(size - done, 1 << 30));
    const ssize_t n = pwrite(fd, from + done, piece, offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return failed(what, fmt::format("writing {} bytes at byte {}", size - done, offset + done));
    done += n;
  }
  return {};
}

Result<AtomicFile> AtomicFile::create(const std::filesystem::path& path) {
  std::error_code error;
  const auto kind = std::filesystem::symlink_status(path, error).type();
  if (kind != std::filesystem::file_type::not_found &&
      kind != std::filesystem::file_type::regular &&
      kind != std::filesystem::file_type::symlink)  // a device must not become a file
    return invalid_argument(
        fmt::format("{}: is no regular file, so it is not replaced", path.string()));
  AtomicFile file;
  file.path_ = path;
  file.temporary_ = path;
  file.temporary_ += fmt::format(".partial-{}", getpid());
  file.fd_ =
      open(file.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file.fd_ < 0) return failed(file.temporary_, "cannot be created");
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)) {}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

Status AtomicFile::write_at(int64_t offset, const void* data, int64_t size) {
  BASCULE_CHECK(fd_ >= 0);
  return write_all_at(fd_, offset, data, size, path_);
}

Status AtomicFile::commit() {
  BASCULE_CHECK(fd_ >= 0);
  // Some file systems report a full disk only here.
  if (fsync(fd_) != 0) return failed(path_, "cannot be stored");
  const int fd = std::exchange(fd_, -1);
  const bool stored = close(fd) == 0 && rename(temporary_.c_str(), path_.c_str()) == 0;
  if (stored) return {};
  const Status fault = failed(path_, "cannot be put in place");
  unlink(temporary_.c_str());
  return fault;
}

}  // namespace bascule
