// In which format a stored matrix is read. The stored types and the scales beside a weight decide,
// never a list in config.json: published lists name modules that do not exist, or name them by
// another program's names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/checkpoint.h"
#include "tensor/weight_matrix.h"

namespace bascule {

struct StoredFormat {
  WeightFormat format = WeightFormat::kF32;
  const StoredTensor* scale = nullptr;  // null for plain formats

  // Where it can't be read: "wrong type" or "wrong shape", and what was expected.
  std::string fault, reason;
};

// `shape` is the weight's [n_out, n_in], whatever its codes' shape.
StoredFormat stored_format(const Checkpoint& checkpoint, const StoredTensor& weight,
                           const std::vector<int64_t>& shape);

// The weight that a scale's name belongs to: "P.weight" of "P.weight_scale" and of
// "P.weight_scale_inv"; empty for other names.
std::string scaled_weight(const std::string& name);

// The weight as a view. BF16 scales of rows are widened into `owned`.
WeightMatrix weight_view(const StoredTensor& weight, const StoredFormat& format, int64_t n_out,
                         int64_t n_in, std::vector<std::unique_ptr<float[]>>& owned);

// Reads the scales: the first that is NaN or infinite is an error that names it.
Status check_scales(const StoredTensor& scale);

}  // namespace bascule
