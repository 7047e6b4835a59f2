// The log: one line an event, one sink (standard error). Formatting is fmt's; a line below the
// level is not formatted.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace bascule {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// Every level's name, and back: "debug", "info", "warning", "error", "off".
std::string_view name(LogLevel level);
Result<LogLevel> log_level_from_name(std::string_view name);

void set_log_level(LogLevel level);
bool logs(LogLevel level);
void write_log(LogLevel level, std::string_view line);

// True the first time this process asks for `key`: for what is said once.
bool first_time(const std::string& key);

template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  if (logs(LogLevel::kDebug))
    write_log(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  if (logs(LogLevel::kInfo))
    write_log(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  if (logs(LogLevel::kWarning))
    write_log(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  if (logs(LogLevel::kError))
    write_log(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace bascule
