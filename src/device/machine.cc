#include "device/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "base/threads.h"

namespace bascule {
namespace {

struct IsaRow {
  Isa isa;
  std::string_view name;
  std::vector<Isa> builds_on;
};

const std::vector<IsaRow>& isa_rows() {
  static const std::vector<IsaRow> rows = {
      {Isa::kBaseline, "baseline", {}},
      {Isa::kAvx2, "avx2", {}},
      {Isa::kAvx512, "avx512", {Isa::kAvx2}},
      {Isa::kAvx512Vnni, "avx512vnni", {Isa::kAvx2, Isa::kAvx512}},
      {Isa::kNeon, "neon", {}},
  };
  return rows;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::vector<Isa> detect_isas() {
  std::vector<Isa> isas = {Isa::kBaseline};
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq");
  if (avx2) isas.push_back(Isa::kAvx2);
  if (avx512) isas.push_back(Isa::kAvx512);
  if (avx512 && __builtin_cpu_supports("avx512vnni")) isas.push_back(Isa::kAvx512Vnni);
#elif defined(__aarch64__)
  isas.push_back(Isa::kNeon);
#endif
  return isas;
}

}  // namespace

std::string_view name(Isa isa) {
  for (const IsaRow& row : isa_rows())
    if (row.isa == isa) return row.name;
  check_failed(__FILE__, __LINE__, "every Isa has a row", "");
}

bool Machine::has(Isa isa) const { return std::ranges::find(isas, isa) != isas.end(); }

Machine Machine::detect() {
  return {
      .processor = processor_name(), .isas = detect_isas(), .n_cpus = int(usable_cpus().size())};
}

Result<Machine> Machine::narrowed_to(std::string_view target) const {
  if (target == "auto") return *this;
  std::string known;
  for (const IsaRow& row : isa_rows()) {
    if (!has(row.isa)) continue;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
    if (row.name != target) continue;
    Machine narrow = *this;
    std::erase_if(narrow.isas, [&](Isa isa) {
      return isa != Isa::kBaseline && isa != row.isa &&
             std::ranges::find(row.builds_on, isa) == row.builds_on.end();
    });
    return narrow;
  }
  return invalid_argument(
      fmt::format("--cpu-target {}: this machine ({}) has auto, {}", target, processor, known));
}

}  // namespace bascule
