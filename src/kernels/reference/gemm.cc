#include "kernels/reference/dot.h"
#include "kernels/reference/rows.h"

namespace bascule::reference {

void matmul(const MatMul& op, Stream&) {
  for (int64_t t = 0; t < op.n_tokens(); ++t) {
    for (int64_t out = 0; out < op.n_out(); ++out) {
      const float sum = float(dot(op.x, t, op.weight, out));
      op.y(t, out) = op.accumulate ? op.y(t, out) + sum : sum;
    }
  }
}

}  // namespace bascule::reference
