#include "kernels/plan.h"

#include <fmt/format.h>

namespace bascule {
namespace {

// "x [n, 1024] BF16 as int8": what a product reads.
std::string input_text(const std::string& extents, Dtype dtype, Rounding rounding) {
  const std::string text = fmt::format("{} {}", extents, name(dtype));
  return rounding == Rounding::kNone ? text : fmt::format("{} as {}", text, name(rounding));
}

template <int Rank>
std::string extents(const std::array<int64_t, Rank>& extent) {
  std::string text = "[";
  for (int i = 0; i < Rank; ++i) text += fmt::format("{}{}", i ? ", " : "", extent[i]);
  return text + "]";
}

// Extents with the token count left open.
template <size_t Rank>
std::string per_token(std::array<int64_t, Rank> extent) {
  std::string text = "[n";
  for (size_t i = 1; i < Rank; ++i) text += fmt::format(", {}", extent[i]);
  return text + "]";
}

}  // namespace

std::string_view name(Origin origin) {
  switch (origin) {
    case Origin::kDefault:
      return "default";
    case Origin::kForced:
      return "forced";
    case Origin::kReference:
      return "reference";
  }
  return "unknown";
}

template <>
std::string shape_text(const Embed& op) {
  return fmt::format("{} {}", extents<2>(op.table.extent), name(op.table.dtype));
}
template <>
std::string shape_text(const RmsNorm& op) {
  return fmt::format("{} to {}", per_token(op.x.extent), name(op.y.dtype));
}
template <>
std::string shape_text(const LayerNorm& op) {
  return per_token(op.x.extent);
}
template <>
std::string shape_text(const RopeTable& op) {
  return per_token(op.cos.extent);
}
template <>
std::string shape_text(const Rope& op) {
  return fmt::format("{} {}", per_token(op.x.extent), op.interleaved ? "pairs" : "halves");
}
template <>
std::string shape_text(const MatMul& op) {
  return fmt::format("x {} · w [{}, {}] {}",
                     input_text(per_token(op.x.extent), op.x.dtype, op.rounding), op.weight.n_out,
                     op.weight.n_in, name(op.weight.format));
}
template <>
std::string shape_text(const Route& op) {
  return fmt::format("{} to {}", per_token(op.logits.extent), op.n_active);
}
template <>
std::string shape_text(const GroupSlots& op) {
  return fmt::format("{} of {} experts", per_token(op.experts.extent), op.begin.extent[0] - 1);
}
template <>
std::string shape_text(const ExpertUp& op) {
  if (op.experts.empty()) return "no experts here";
  return fmt::format("{} x {} · 2 w [{}, {}] {}", op.experts.size(),
                     input_text(per_token(op.x.extent), op.x.dtype, op.rounding),
                     op.experts[0].gate.n_out, op.experts[0].gate.n_in,
                     name(op.experts[0].gate.format));
}
template <>
std::string shape_text(const ExpertDown& op) {
  if (op.experts.empty()) return "no experts here";
  return fmt::format("{} x {} · w [{}, {}] {}", op.experts.size(),
                     input_text(per_token(op.act.extent), op.act.dtype, op.rounding),
                     op.experts[0].down.n_out, op.experts[0].down.n_in,
                     name(op.experts[0].down.format));
}
template <>
std::string shape_text(const CombineSlots& op) {
  return fmt::format("{} of {} slots", per_token(op.h.extent), op.weights.extent[1]);
}
template <>
std::string shape_text(const SparseMla& op) {
  return fmt::format("q {} · {} keys of {} {} · kv_b {}", per_token(op.q.extent),
                     op.selected.extent[1], op.cache.width, name(op.cache.dtype),
                     name(op.kv_b.format));
}
template <>
std::string shape_text(const SelectKeys& op) {
  return fmt::format("q {} · {} keys of {} {}, top {}", per_token(op.q.extent), op.max_context,
                     op.keys.width, name(op.keys.dtype), op.selected.extent[1]);
}
template <>
std::string shape_text(const CacheWrite& op) {
  return fmt::format("{} to {}", per_token(op.x.extent), name(op.cache.dtype));
}

}  // namespace bascule
