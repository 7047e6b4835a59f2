#include <cmath>

#include "kernels/reference/rows.h"

namespace bascule::reference {

void embed(const Embed& op, Stream&) {
  for (int64_t t = 0; t < op.n_tokens(); ++t) {
    const void* row = op.table.row(op.tokens(t));
    for (int64_t c = 0; c < op.y.extent[1]; ++c) op.y(t, c) = load(row, op.table.dtype, c);
  }
}

void rms_norm(const RmsNorm& op, Stream&) {
  const int64_t n_columns = op.x.extent[1];
  for (int64_t t = 0; t < op.n_tokens(); ++t) {
    double sum_of_squares = 0;
    for (int64_t c = 0; c < n_columns; ++c) sum_of_squares += double(op.x(t, c)) * op.x(t, c);
    const float scale = float(1 / std::sqrt(sum_of_squares / double(n_columns) + op.eps));
    for (int64_t c = 0; c < n_columns; ++c) {
      const float weight = load(op.weight.data, op.weight.dtype, c);
      store(op.y.row(t), op.y.dtype, c, op.x(t, c) * scale * weight);
    }
  }
}

void layer_norm(const LayerNorm& op, Stream&) {
  const int64_t n_columns = op.x.extent[1];
  for (int64_t t = 0; t < op.n_tokens(); ++t) {
    double sum = 0, sum_of_squares = 0;
    for (int64_t c = 0; c < n_columns; ++c) sum += op.x(t, c);
    const double mean = sum / double(n_columns);
    for (int64_t c = 0; c < n_columns; ++c) {
      const double d = op.x(t, c) - mean;
      sum_of_squares += d * d;
    }
    const double scale = 1 / std::sqrt(sum_of_squares / double(n_columns) + op.eps);
    for (int64_t c = 0; c < n_columns; ++c) {
      const double normed = (op.x(t, c) - mean) * scale;
      op.y(t, c) = float(normed * load(op.weight.data, op.weight.dtype, c) +
                         load(op.bias.data, op.bias.dtype, c));
    }
  }
}

void rope_table(const RopeTable& op, Stream&) {
  for (int64_t t = 0; t < op.n_tokens(); ++t) {
    for (int64_t j = 0; j < op.inverse_frequency.extent[0]; ++j) {
      const double angle = double(op.position(t)) * double(op.inverse_frequency(j));
      op.cos(t, j) = float(std::cos(angle) * op.magnitude);
      op.sin(t, j) = float(std::sin(angle) * op.magnitude);
    }
  }
}

void rope(const Rope& op, Stream&) {
  const int64_t half = op.x.extent[2] / 2;
  for (int64_t t = 0; t < op.n_tokens(); ++t) {
    for (int64_t h = 0; h < op.x.extent[1]; ++h) {
      for (int64_t j = 0; j < half; ++j) {
        float& a = op.interleaved ? op.x(t, h, 2 * j) : op.x(t, h, j);
        float& b = op.interleaved ? op.x(t, h, 2 * j + 1) : op.x(t, h, j + half);
        const float x = a, y = b;
        a = x * op.cos(t, j) - y * op.sin(t, j);
        b = y * op.cos(t, j) + x * op.sin(t, j);
      }
    }
  }
}

void cache_write(const CacheWrite& op, Stream&) {
  for (int64_t t = 0; t < op.n_tokens(); ++t) {
    void* row = op.places.row(op.cache, t, op.places.position(t));
    for (int64_t c = 0; c < op.cache.width; ++c) store(row, op.cache.dtype, c, op.x(t, c));
  }
}

}  // namespace bascule::reference
