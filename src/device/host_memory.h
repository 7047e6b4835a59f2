// How much memory a process may still take here, asked once at start.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace bascule {

struct HostMemory {
  // Free, or held by caches that the system gives up: mapped weights may lie in those.
  int64_t available_bytes = 0;
  std::string source;  // what set it: "MemAvailable", or "this control group's memory.max"

  // Of /proc/meminfo and the control group (v2) of this process, the smaller.
  static HostMemory detect();
};

// MemAvailable of the text of /proc/meminfo; none where it has no such line.
std::optional<int64_t> mem_available_bytes(std::string_view meminfo);

// What a control group's folder leaves: memory.max less memory.current, plus its inactive file
// pages. None without a limit.
std::optional<int64_t> cgroup_available_bytes(const std::filesystem::path& folder);

}  // namespace bascule
