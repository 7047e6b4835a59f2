#include "device/host_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

namespace bascule {
namespace {

std::string read_all(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The number after `key` and spaces, where a line begins with the key.
std::optional<int64_t> number_after(std::string_view text, std::string_view key) {
  for (size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    std::string_view rest = text.substr(at + key.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    int64_t value = 0;
    if (std::from_chars(rest.data(), rest.data() + rest.size(), value).ec == std::errc())
      return value;
  }
  return {};
}

// The folder of this process's control group: the line "0::/path" of /proc/self/cgroup.
std::filesystem::path own_cgroup() {
  const std::string text = read_all("/proc/self/cgroup");
  const size_t at = text.find("0::/");
  if (at == text.npos) return "/sys/fs/cgroup";
  const size_t end = text.find('\n', at);
  return std::filesystem::path("/sys/fs/cgroup") / text.substr(at + 4, end - at - 4);
}

}  // namespace

std::optional<int64_t> mem_available_bytes(std::string_view meminfo) {
  const auto kib = number_after(meminfo, "MemAvailable:");
  if (!kib) return {};
  return *kib * 1024;
}

std::optional<int64_t> cgroup_available_bytes(const std::filesystem::path& folder) {
  const auto most = number_after(read_all(folder / "memory.max"), "");
  const auto used = number_after(read_all(folder / "memory.current"), "");
  if (!most || !used) return {};
  const auto reclaimable = number_after(read_all(folder / "memory.stat"), "inactive_file");
  return std::max<int64_t>(0, *most - *used + reclaimable.value_or(0));
}

HostMemory HostMemory::detect() {
  HostMemory memory{mem_available_bytes(read_all("/proc/meminfo")).value_or(0), "MemAvailable"};
  // A limit may stand at any level above; inside a container the group's own folder is the root.
  for (std::filesystem::path folder = own_cgroup(); folder.string().size() >= 14;
       folder = folder.parent_path()) {
    const auto limit = cgroup_available_bytes(folder);
    if (limit && *limit < memory.available_bytes)
      memory = {*limit, "memory.max of this control group"};
  }
  return memory;
}

}  // namespace bascule
