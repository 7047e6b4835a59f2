#include "base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <set>

namespace bascule {
namespace {

struct Level {
  LogLevel level;
  std::string_view name;
  spdlog::level::level_enum theirs;
};
constexpr std::array<Level, 5> kLevels = {{{LogLevel::kDebug, "debug", spdlog::level::debug},
                                           {LogLevel::kInfo, "info", spdlog::level::info},
                                           {LogLevel::kWarning, "warning", spdlog::level::warn},
                                           {LogLevel::kError, "error", spdlog::level::err},
                                           {LogLevel::kOff, "off", spdlog::level::off}}};

const Level& row(LogLevel level) {
  for (const Level& l : kLevels)
    if (l.level == level) return l;
  check_failed(__FILE__, __LINE__, "every level has a row", "");
}

// Colours only for a terminal that wants them (no-color.org).
spdlog::logger& sink() {
  static spdlog::logger logger = [] {
    const char* no_color = std::getenv("NO_COLOR");
    const auto mode =
        no_color && *no_color ? spdlog::color_mode::never : spdlog::color_mode::automatic;
    spdlog::logger made("bascule", std::make_shared<spdlog::sinks::stderr_color_sink_mt>(mode));
    made.set_pattern("%^%Y-%m-%dT%H:%M:%S.%e %l%$ %v");
    made.set_level(spdlog::level::warn);
    return made;
  }();
  return logger;
}

}  // namespace

std::string_view name(LogLevel level) { return row(level).name; }

Result<LogLevel> log_level_from_name(std::string_view name) {
  for (const Level& l : kLevels)
    if (l.name == name) return l.level;
  return invalid_argument(
      fmt::format("log level \"{}\": debug, info, warning, error or off", name));
}

void set_log_level(LogLevel level) { sink().set_level(row(level).theirs); }
bool logs(LogLevel level) { return sink().should_log(row(level).theirs); }
void write_log(LogLevel level, std::string_view line) {
  sink().log(row(level).theirs, spdlog::string_view_t(line.data(), line.size()));
}

bool first_time(const std::string& key) {
  static std::mutex mutex;
  static std::set<std::string> seen;
  const std::scoped_lock lock(mutex);
  return seen.insert(key).second;
}

}  // namespace bascule
