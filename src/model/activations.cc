#include "model/activations.h"

namespace bascule {

std::string_view name(ActivationScheme scheme) {
  switch (scheme) {
    case ActivationScheme::kPlain:
      return "plain";
    case ActivationScheme::kInt8:
      return "int8";
    case ActivationScheme::kInt8All:
      return "int8-all";
    case ActivationScheme::kFp8:
      return "fp8";
    case ActivationScheme::kDeclared:
      return "declared";
  }
  return "unknown";
}

Rounding rounding_of(ActivationScheme scheme, WeightFormat format) {
  const bool is_mxfp4 = format == WeightFormat::kMxfp4 || format == WeightFormat::kMxfp4Tiles;
  if (scheme == ActivationScheme::kInt8All) return Rounding::kInt8;
  if (scheme == ActivationScheme::kInt8) return is_mxfp4 ? Rounding::kInt8 : Rounding::kNone;
  if (scheme == ActivationScheme::kPlain || is_plain(format)) return Rounding::kNone;
  if (format == WeightFormat::kFp8Rows) return Rounding::kFp8Token;
  return scheme == ActivationScheme::kDeclared && is_mxfp4 ? Rounding::kMxfp4
                                                           : Rounding::kFp8Groups;
}

}  // namespace bascule
