// fmt's definitions, compiled once here instead of in every file that formats (4 s a file).
// Debian ships libfmt as a shared library only.
#include <fmt/format-inl.h>

namespace fmt {
inline namespace v9 {
namespace detail {
template auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;
}  // namespace detail
}  // namespace v9
}  // namespace fmt
