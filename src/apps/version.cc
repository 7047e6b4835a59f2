#include "apps/version.h"

#include <fmt/format.h>
#include <source_version.h>  // written by cmake/source_version.cmake at each build

#include "kernels/registry.h"

namespace bascule {
namespace {

// "cpu.matmul.avx2" is compiled for "avx2"; products have a row for each instruction set.
std::string compiled_in() {
  std::string names;
  for (const Kernel<MatMul>& row : registry().rows<MatMul>())
    names +=
        fmt::format("{}{}", names.empty() ? "" : ", ", row.name.substr(row.name.rfind('.') + 1));
  return names;
}

}  // namespace

std::string version_text() {
  const Machine machine = Machine::detect();
  std::string isas;
  for (const Isa isa : machine.isas)
    isas += fmt::format("{}{}", isas.empty() ? "" : ", ", name(isa));
  return fmt::format(
      "bascule {} ({})\n"
      "compiler      {}\n"
      "kernels       {}\n"
      "this machine  {}: {}\n",
      BASCULE_VERSION, kSourceVersion, BASCULE_COMPILER, compiled_in(), machine.processor, isas);
}

}  // namespace bascule
