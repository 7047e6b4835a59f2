// Where a launch goes: on the CPU, the threads of one rank. A GPU's queue joins it here.
#pragma once

#include "base/threads.h"

namespace bascule {

struct Stream {
  Threads* threads = nullptr;
};

}  // namespace bascule
