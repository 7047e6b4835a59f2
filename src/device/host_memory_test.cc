#include "device/host_memory.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temp_folder.h"

namespace bascule {
namespace {

TEST(HostMemory, ReadsMeminfo) {
  EXPECT_EQ(mem_available_bytes("MemTotal:       100 kB\nMemAvailable:   42 kB\n"), 42 * 1024);
  EXPECT_EQ(mem_available_bytes("MemTotal:       100 kB\n"), std::nullopt);
}

TEST(HostMemory, ReadsTheControlGroup) {
  const TempFolder group;
  EXPECT_EQ(cgroup_available_bytes(group.path()), std::nullopt);
  group.write("memory.current", "700\n");
  group.write("memory.max", "max\n");
  EXPECT_EQ(cgroup_available_bytes(group.path()), std::nullopt);
  group.write("memory.max", "1000\n");
  EXPECT_EQ(cgroup_available_bytes(group.path()), 300);
  group.write("memory.stat", "anon 5\nactive_file 9\ninactive_file 250\n");
  EXPECT_EQ(cgroup_available_bytes(group.path()), 550);
}

TEST(HostMemory, FindsSomeHere) { EXPECT_GT(HostMemory::detect().available_bytes, 1 << 20); }

}  // namespace
}  // namespace bascule
