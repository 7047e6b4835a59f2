#include "kernels/registry.h"

namespace bascule {

const Registry& registry() {
  static const Registry all = [] {
    Registry r;
    reference::add_kernels(r);
    cpu::add_kernels(r);
    return r;
  }();
  return all;
}

}  // namespace bascule
