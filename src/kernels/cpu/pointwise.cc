// Ops that touch each activation once. Threads share tokens only when there are enough of them:
// one token takes a microsecond or less, and waking a thread costs more.
#include "kernels/pointwise.h"

#include <cmath>

#include "kernels/cpu/products.h"
#include "kernels/cpu/rows.h"

namespace bascule::cpu {
namespace {

constexpr int64_t kTokensOfThread = 16;

template <typename Op, typename F>
void for_each_token(const Op& op, Stream& stream, F f) {
  stream.threads->ranges(op.n_tokens(), kTokensOfThread, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) f(t);
  });
}

// Pairs (x[j · step], x[j · step + distance]).
void rotate(float* x, const float* cos, const float* sin, int64_t half, int64_t step,
            int64_t distance) {
  for (int64_t j = 0; j < half; ++j) {
    const float a = x[j * step], b = x[j * step + distance];
    x[j * step] = a * cos[j] - b * sin[j];
    x[j * step + distance] = b * cos[j] + a * sin[j];
  }
}

}  // namespace

void embed(const Embed& op, Stream& stream, const Loops& loops) {
  for_each_token(op, stream, [&](int64_t t) {
    loops.widen(op.table.row(op.tokens(t)), op.table.dtype, op.y.extent[1], &op.y(t, 0));
  });
}

void rms_norm(const RmsNorm& op, Stream& stream, const Loops& loops) {
  for_each_token(op, stream, [&](int64_t t) {
    loops.rms_norm(&op.x(t, 0), op.weight.data, op.weight.dtype, op.x.extent[1], op.eps,
                   op.y.row(t), op.y.dtype);
  });
}

void layer_norm(const LayerNorm& op, Stream& stream, const Loops& loops) {
  for_each_token(op, stream, [&](int64_t t) {
    loops.layer_norm(&op.x(t, 0), op.weight.data, op.weight.dtype, op.bias.data, op.bias.dtype,
                     op.x.extent[1], op.eps, &op.y(t, 0));
  });
}

void cache_write(const CacheWrite& op, Stream& stream, const Loops& loops) {
  for_each_token(op, stream, [&](int64_t t) {
    loops.narrow(&op.x(t, 0), op.cache.width, op.places.row(op.cache, t, op.places.position(t)),
                 op.cache.dtype);
  });
}

void rope_table(const RopeTable& op, Stream& stream) {
  for_each_token(op, stream, [&](int64_t t) {
    for (int64_t j = 0; j < op.inverse_frequency.extent[0]; ++j) {
      const double angle = double(op.position(t)) * double(op.inverse_frequency(j));
      op.cos(t, j) = float(std::cos(angle) * op.magnitude);
      op.sin(t, j) = float(std::sin(angle) * op.magnitude);
    }
  });
}

void rope(const Rope& op, Stream& stream) {
  const int64_t half = op.x.extent[2] / 2;
  for_each_token(op, stream, [&](int64_t t) {
    for (int64_t h = 0; h < op.x.extent[1]; ++h)
      rotate(&op.x(t, h, 0), &op.cos(t, 0), &op.sin(t, 0), half, op.interleaved ? 2 : 1,
             op.interleaved ? 1 : half);
  });
}

Refusal refuses_embed(const Embed& op) {
  if (op.y.stride[1] != 1) return "columns of y aren't contiguous";
  if (!is_plain_float(op.table.dtype)) return "the table is " + std::string(name(op.table.dtype));
  if (op.table.stride[1] != 1) return "columns of the table aren't contiguous";
  return {};
}

Refusal refuses_rms_norm(const RmsNorm& op) {
  if (!is_plain_float(op.weight.dtype)) return "weights are " + std::string(name(op.weight.dtype));
  if (op.x.stride[1] != 1 || op.weight.stride[0] != 1) return "columns aren't contiguous";
  return refuses_activation(op.y);
}

Refusal refuses_layer_norm(const LayerNorm& op) {
  if (!is_plain_float(op.weight.dtype)) return "weights are " + std::string(name(op.weight.dtype));
  if (!is_plain_float(op.bias.dtype)) return "biases are " + std::string(name(op.bias.dtype));
  if (op.x.stride[1] != 1 || op.y.stride[1] != 1 || op.weight.stride[0] != 1 ||
      op.bias.stride[0] != 1)
    return "columns aren't contiguous";
  return {};
}

Refusal refuses_cache_write(const CacheWrite& op) {
  if (op.x.stride[1] != 1) return "columns of x aren't contiguous";
  if (op.cache.dtype != Dtype::kF32 && op.cache.dtype != Dtype::kBf16)
    return "the cache is " + std::string(name(op.cache.dtype));
  return {};
}

Refusal refuses_rope(const Rope& op) {
  if (op.x.stride[2] != 1 || op.cos.stride[1] != 1 || op.sin.stride[1] != 1)
    return "columns aren't contiguous";
  return {};
}

}  // namespace bascule::cpu
