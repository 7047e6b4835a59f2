// Failures that a caller or the world can cause, as values. Bugs are BASCULE_CHECK's (check.h).
// A message says what was tried, what was found and what would do. Nothing here throws.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace bascule {

enum class Code {
  kInvalidArgument,    // the caller's value can never work: a bad option, a malformed file
  kNotFound,           // the named thing does not exist
  kUnsupported,        // understood, and not something this program does
  kOutOfRange,         // too long or too large for this model or configuration
  kResourceExhausted,  // memory, pages, disk or a queue ran out
  kDataLoss,           // bytes are truncated, overlapping or corrupt
  kCancelled,          // somebody asked for it to stop
  kUnavailable,        // cannot serve now; later may do
  kInternal,           // an error of the system underneath (a failed system call)
};

// "invalid argument", "not found", ...
const char* name(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // success
  Status(Code code, std::string message) : error_(Error{code, std::move(message)}) {}

  bool ok() const { return !error_; }
  Code code() const {
    BASCULE_CHECK(error_);
    return error_->code;
  }
  const std::string& message() const {
    BASCULE_CHECK(error_);
    return error_->message;
  }

  // The same failure, told from further up: "context: message". No effect on success.
  Status with_context(const std::string& context) && {
    if (error_) error_->message = context + ": " + error_->message;
    return std::move(*this);
  }

 private:
  struct Error {
    Code code;
    std::string message;
  };
  std::optional<Error> error_;
};

inline Status invalid_argument(std::string m) { return {Code::kInvalidArgument, std::move(m)}; }
inline Status not_found(std::string m) { return {Code::kNotFound, std::move(m)}; }
inline Status unsupported(std::string m) { return {Code::kUnsupported, std::move(m)}; }
inline Status out_of_range(std::string m) { return {Code::kOutOfRange, std::move(m)}; }
inline Status resource_exhausted(std::string m) { return {Code::kResourceExhausted, std::move(m)}; }
inline Status data_loss(std::string m) { return {Code::kDataLoss, std::move(m)}; }
inline Status cancelled(std::string m) { return {Code::kCancelled, std::move(m)}; }
inline Status unavailable(std::string m) { return {Code::kUnavailable, std::move(m)}; }
inline Status internal(std::string m) { return {Code::kInternal, std::move(m)}; }

// A value, or why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}        // NOLINT(google-explicit-constructor)
  Result(Status status) : state_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    BASCULE_CHECK(!std::get<Status>(state_).ok());
  }

  bool ok() const { return std::holds_alternative<T>(state_); }
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }

  // To ask a failure for its value is a bug; the message says which failure it was.
  T& value() & {
    check_value();
    return std::get<T>(state_);
  }
  const T& value() const& {
    check_value();
    return std::get<T>(state_);
  }
  T&& value() && {
    check_value();
    return std::get<T>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  Result with_context(const std::string& context) && {
    if (ok()) return std::move(*this);
    return std::get<Status>(std::move(state_)).with_context(context);
  }

 private:
  void check_value() const {
    if (!ok()) check_failed(__FILE__, __LINE__, "there is a value", status().message());
  }
  std::variant<T, Status> state_;
};

inline Status status_of(Status s) { return s; }
template <typename T>
Status status_of(const Result<T>& r) {
  return r.status();
}

}  // namespace bascule

#define BASCULE_TRY_CONCAT_(a, b) a##b
#define BASCULE_TRY_NAME_(line) BASCULE_TRY_CONCAT_(try_result_, line)

// BASCULE_TRY(check_shape(t));                 leaves the function with the failure, if there is
// one
#define BASCULE_TRY(expression)                                                                  \
  do {                                                                                           \
    if (auto try_status = ::bascule::status_of(expression); !try_status.ok()) return try_status; \
  } while (0)

// BASCULE_TRY_ASSIGN(auto file, open(path));   the same, and names the value
#define BASCULE_TRY_ASSIGN(declaration, expression)                                   \
  auto BASCULE_TRY_NAME_(__LINE__) = (expression);                                    \
  if (!BASCULE_TRY_NAME_(__LINE__).ok()) return BASCULE_TRY_NAME_(__LINE__).status(); \
  declaration = std::move(BASCULE_TRY_NAME_(__LINE__)).value()
