// Standard input, output and error as the commands use them. Nothing here throws; standard output
// remembers its first failure, so that a full disk behind it is told instead of lost.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace bascule {

bool is_terminal(int file_descriptor);
bool wants_colour(int file_descriptor);  // a terminal, and NO_COLOR is not set (no-color.org)

void write_output(std::string_view text);  // standard output, buffered
void write_notice(std::string_view text);  // standard error, at once

template <typename... Args>
void print_output(fmt::format_string<Args...> format, Args&&... args) {
  write_output(fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void print_notice(fmt::format_string<Args...> format, Args&&... args) {
  write_notice(fmt::format(format, std::forward<Args>(args)...));
}

// Everything written so far leaves the buffer; fails if anything could not be written, ever.
Status flush_output();

// Reads a file descriptor that it does not own. Ctrl-C (interrupt.h) ends a wait with kCancelled.
class Input {
 public:
  Input(int file_descriptor, std::string name) : fd_(file_descriptor), name_(std::move(name)) {}

  // The next line without its end; none at the end of the input.
  Result<std::optional<std::string>> line();
  // All that is left; kOutOfRange past `max_bytes`.
  Result<std::string> all(size_t max_bytes);

 private:
  Result<size_t> more();  // bytes added to buffer_; 0 at the end

  int fd_;
  std::string name_, buffer_;
};

// The same of a whole file.
Result<std::string> read_file(const std::string& path, size_t max_bytes);

}  // namespace bascule
