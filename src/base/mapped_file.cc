#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <utility>

namespace bascule {

// A signal handler may neither lock nor allocate, so the mappings stand in a list whose nodes are
// published once and never freed: a node whose `begin` is 0 is free and is used again.
struct MappedFile::Record {
  std::atomic<uintptr_t> begin{0};
  size_t size = 0;
  std::string path;
  Record* next = nullptr;

  static std::atomic<Record*> first;
  static std::mutex writers;
  static struct sigaction previous;

  static void on_sigbus(int signal, siginfo_t* info, void* context);
  static void install();
};

std::atomic<MappedFile::Record*> MappedFile::Record::first{nullptr};
std::mutex MappedFile::Record::writers;
struct sigaction MappedFile::Record::previous;

namespace {

constexpr int kExitIoError = 74;  // EX_IOERR of sysexits.h

// Only what POSIX allows in a signal handler.
void print(const char* text) { (void)!write(STDERR_FILENO, text, strlen(text)); }
void print(uint64_t number) {
  char digits[21];
  char* p = digits + sizeof digits - 1;
  *p = 0;
  do *--p = static_cast<char>('0' + number % 10);
  while (number /= 10);
  print(p);
}

}  // namespace

void MappedFile::Record::on_sigbus(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const bool is_fault = info->si_code > 0;  // else somebody sent it, and there is no address
  const Record* r = is_fault ? first.load(std::memory_order_acquire) : nullptr;
  for (; r != nullptr; r = r->next) {
    const uintptr_t begin = r->begin.load(std::memory_order_acquire);
    if (begin == 0 || address < begin || address - begin >= r->size) continue;
    struct stat now;
    print("bascule: ");
    print(r->path.c_str());
    if (stat(r->path.c_str(), &now) == 0 && static_cast<uint64_t>(now.st_size) < r->size) {
      print(" shrank from ");
      print(r->size);
      print(" to ");
      print(static_cast<uint64_t>(now.st_size));
      print(" bytes while it was in use. Do not change a model that is loaded; restore the file");
    } else {
      print(" could not be read at byte ");
      print(address - begin);
      print(" while it was in use. Look for a disk or network error");
    }
    print(" and start again.\n");
    _exit(kExitIoError);
  }
  // Not ours: as if we had never been here.
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr)
    return previous.sa_sigaction(signal, info, context);
  sigaction(SIGBUS, &previous, nullptr);
  raise(SIGBUS);  // comes when this handler has returned
}

void MappedFile::Record::install() {
  struct sigaction action = {};
  action.sa_sigaction = on_sigbus;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &previous);
}

MappedFile::Record* MappedFile::publish(const std::byte* data, size_t size,
                                        const std::filesystem::path& path) {
  const std::lock_guard lock(Record::writers);
  if (Record::first.load() == nullptr) Record::install();
  Record* r = Record::first.load();
  while (r != nullptr && r->begin.load() != 0) r = r->next;
  const bool is_new = r == nullptr;
  if (is_new) r = new Record;
  r->size = size;
  r->path = path.string();
  r->begin.store(reinterpret_cast<uintptr_t>(data), std::memory_order_release);
  if (is_new) {
    r->next = Record::first.load();
    Record::first.store(r, std::memory_order_release);
  }
  return r;
}

namespace {

Status failed(const std::filesystem::path& path, const char* what) {
  const int error = errno;
  const Code code = error == ENOENT || error == ENOTDIR ? Code::kNotFound
                    : error == ENOMEM || error == EMFILE || error == ENFILE
                        ? Code::kResourceExhausted
                        : Code::kInternal;
  return {code, fmt::format("{}: {}: {}", path.string(), what, strerror(error))};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return failed(path, "cannot be opened");
  struct stat status;
  const bool known = fstat(fd, &status) == 0;
  MappedFile file;
  file.path_ = path;
  Status fault;
  if (!known) {
    fault = failed(path, "cannot be examined");
  } else if (!S_ISREG(status.st_mode)) {
    fault = invalid_argument(fmt::format("{}: not a regular file", path.string()));
  } else if (status.st_size > 0) {  // an empty file has no bytes to map
    void* data = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
      fault = failed(path, "cannot be mapped");
    } else {
      file.data_ = static_cast<const std::byte*>(data);
      file.size_ = static_cast<size_t>(status.st_size);
      file.record_ = publish(file.data_, file.size_, path);
    }
  }
  close(fd);
  if (!fault.ok()) return fault;
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      record_(std::exchange(other.record_, nullptr)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(record_, other.record_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  record_->begin.store(0, std::memory_order_release);
  munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::advise(Access access, int64_t offset, int64_t size) const {
  if (size <= 0 || offset < 0 || static_cast<size_t>(offset) >= size_) return;
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t first = offset / page * page;
  const int64_t end = std::min(offset + size, static_cast<int64_t>(size_));
  const int advice = access == Access::kSequential ? MADV_SEQUENTIAL
                     : access == Access::kRandom   ? MADV_RANDOM
                     : access == Access::kWillNeed ? MADV_WILLNEED
                     : access == Access::kDontNeed ? MADV_DONTNEED
                                                   : MADV_NORMAL;
  madvise(const_cast<std::byte*>(data_) + first, static_cast<size_t>(end - first), advice);
}

}  // namespace bascule
