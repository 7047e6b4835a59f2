#include "kernels/reference/dot.h"
#include "kernels/reference/rows.h"

namespace bascule::reference {

void matmul(const MatMul& op, Stream&) {
  const RoundedRows x(op.x, op.rounding);
  DecodedRow row(op.n_in());
  for (int64_t out = 0; out < op.n_out(); ++out) {
    const std::vector<float>& w = row.of(op.weight, out);
    for (int64_t t = 0; t < op.n_tokens(); ++t) {
      const float sum = float(dot(x[t], w));
      op.y(t, out) = op.accumulate ? op.y(t, out) + sum : sum;
    }
  }
}

}  // namespace bascule::reference
