// config.json and generation_config.json from arbitrary text: refused, or a model whose table of
// tensors has positive shapes of a representable size.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "model/config.h"
#include "model/weights.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bascule;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)parse_generation_config(text, "fuzz");
  const auto config = parse_config(text, "fuzz");
  if (!config.ok()) return 0;
  BASCULE_CHECK(config->softmax_scale() > 0);
  BASCULE_CHECK_LE(1, config->n_index_layers());
  BASCULE_CHECK_EQ(static_cast<int64_t>(config->is_sparse.size()), config->n_layers);
  constexpr int64_t kManyExperts = 2000;  // longer tables say nothing new, and take long
  if ((config->n_layers + 1) * config->n_experts > kManyExperts) return 0;
  for (const ExpectedTensor& t : expected_tensors(*config)) {
    int64_t n = 1;
    for (const int64_t extent : t.shape) {
      BASCULE_CHECK_LE(1, extent);
      BASCULE_CHECK(!__builtin_mul_overflow(n, extent, &n));
    }
    BASCULE_CHECK_LE(n, INT64_MAX / 8);
  }
  return 0;
}
