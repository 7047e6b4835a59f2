#pragma once

#include <string>

namespace bascule {

// Version and git's name of the sources; compiler; kernels compiled in; what this machine has.
std::string version_text();

}  // namespace bascule
