// The CPU rows of every instruction set this build has.
#include "kernels/registry.h"

namespace bascule::cpu {

void add_kernels(Registry&) {}

}  // namespace bascule::cpu
