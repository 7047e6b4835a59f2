// What the processor can do, and what it may be asked to do. `--cpu-target` narrows it, so that
// each instruction set that a machine has can be forced and tested.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace bascule {

// Each is what a kernel row asks for; they are not ordered by speed.
enum class Isa {
  kBaseline,    // what the compiler was told: x86-64 or Armv8-A
  kAvx2,        // AVX2, FMA, F16C
  kAvx512,      // F, BW, VL, DQ
  kAvx512Vnni,  // kAvx512 and its dot products of bytes
  kNeon,        // Armv8-A Advanced SIMD
};
std::string_view name(Isa isa);  // "avx2"

struct Machine {
  std::string processor;  // as it calls itself
  std::vector<Isa> isas;  // usable, baseline first
  int n_cpus = 1;         // usable ones

  bool has(Isa isa) const;

  static Machine detect();

  // Keeps the baseline and, of the rest, `target` and what it builds on. "auto" keeps all. An
  // unknown or absent target is an error that lists what this machine has.
  Result<Machine> narrowed_to(std::string_view target) const;
};

}  // namespace bascule
