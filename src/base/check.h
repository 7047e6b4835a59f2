// BASCULE_CHECK is for bugs: what must hold whatever the input. It prints the condition, the place
// and, with the comparing forms, both values, then stops the process. On in release.
#pragma once

#include <sstream>
#include <string>

namespace bascule {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& values);

template <typename A, typename B>
[[noreturn]] void check_failed_with(const char* file, int line, const char* condition, const A& a,
                                    const B& b) {
  std::ostringstream values;
  values << a << " against " << b;
  check_failed(file, line, condition, values.str());
}

}  // namespace bascule

#define BASCULE_CHECK(condition)                                                   \
  do {                                                                             \
    if (!(condition)) ::bascule::check_failed(__FILE__, __LINE__, #condition, ""); \
  } while (0)

#define BASCULE_CHECK_OP_(op, a, b)                                                          \
  do {                                                                                       \
    const auto& check_a = (a);                                                               \
    const auto& check_b = (b);                                                               \
    if (!(check_a op check_b))                                                               \
      ::bascule::check_failed_with(__FILE__, __LINE__, #a " " #op " " #b, check_a, check_b); \
  } while (0)

#define BASCULE_CHECK_EQ(a, b) BASCULE_CHECK_OP_(==, a, b)
#define BASCULE_CHECK_LE(a, b) BASCULE_CHECK_OP_(<=, a, b)
#define BASCULE_CHECK_LT(a, b) BASCULE_CHECK_OP_(<, a, b)
