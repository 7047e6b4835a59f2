#include "apps/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "apps/interrupt.h"

namespace bascule {
namespace {

int output_error = 0;  // errno of the first failure

}  // namespace

bool is_terminal(int file_descriptor) { return isatty(file_descriptor) == 1; }

bool wants_colour(int file_descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  return is_terminal(file_descriptor) && !(no_color && *no_color);
}

void write_output(std::string_view text) {
  const bool done = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!done && output_error == 0) output_error = errno;
}

void write_notice(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

Status flush_output() {
  if (std::fflush(stdout) != 0 && output_error == 0) output_error = errno;
  if (output_error == 0) return {};
  return {output_error == ENOSPC ? Code::kResourceExhausted : Code::kInternal,
          fmt::format("standard output: {}", strerror(output_error))};
}

Result<size_t> Input::more() {
  std::array<char, 65536> piece;
  ssize_t n = -1;
  do {
    if (Interrupt::requested()) return cancelled("stopped by Ctrl-C");
    // In short waits: a signal between the question above and read() would else be missed.
    pollfd wait = {.fd = fd_, .events = POLLIN, .revents = 0};
    constexpr int kWaitMs = 200;
    errno = EINTR;
    if (poll(&wait, 1, kWaitMs) > 0) n = read(fd_, piece.data(), piece.size());
  } while (n < 0 && errno == EINTR);
  if (n < 0) return internal(fmt::format("{}: {}", name_, strerror(errno)));
  buffer_.append(piece.data(), size_t(n));
  return size_t(n);
}

Result<std::optional<std::string>> Input::line() {
  size_t end;
  while ((end = buffer_.find('\n')) == std::string::npos) {
    BASCULE_TRY_ASSIGN(const size_t n, more());
    if (n > 0) continue;
    if (buffer_.empty()) return std::optional<std::string>();
    return std::optional(std::exchange(buffer_, {}));
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return std::optional(std::move(line));
}

Result<std::string> Input::all(size_t max_bytes) {
  for (size_t n = 1; n > 0;) {
    BASCULE_TRY_ASSIGN(n, more());
    if (buffer_.size() > max_bytes)
      return out_of_range(fmt::format("{}: longer than {} bytes", name_, max_bytes));
  }
  return std::exchange(buffer_, {});
}

Result<std::string> read_file(const std::string& path, size_t max_bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == EINTR) return cancelled("stopped by Ctrl-C");
  if (fd < 0) return not_found(fmt::format("{}: {}", path, strerror(errno)));
  Result<std::string> text = Input(fd, path).all(max_bytes);
  close(fd);
  return text;
}

}  // namespace bascule
