#include "serve/api_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "serve/json_text.h"
#include "text/utf8.h"

namespace bascule {
namespace {

std::string_view openai_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return "service_unavailable_error";
    default:
      return status < 500 ? "invalid_request_error" : "server_error";
  }
}

std::string_view anthropic_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

// "max_tokens" of "max_tokens is ...", "messages" of "messages[3].content: ...".
std::string field_at_start(const std::string& message) {
  const auto is_name = [](unsigned char c) {
    return std::islower(c) || std::isdigit(c) || c == '_';
  };
  const auto end = std::ranges::find_if_not(message, is_name);
  const std::string_view rest(end, message.end());
  const bool is_field =
      end != message.begin() && (rest.starts_with(" is ") || rest.starts_with('[') ||
                                 rest.starts_with('.') || rest.starts_with(": "));
  return is_field ? std::string(message.begin(), end) : std::string();
}

// A parser's message may quote the bytes that it could not read.
std::string as_utf8(const std::string& message) {
  Utf8Stream utf8;
  std::string text;
  utf8.push(message, text);
  utf8.finish(text);
  return text;
}

std::string or_null(const std::string& text) { return text.empty() ? "null" : json_quoted(text); }

}  // namespace

int http_status(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kUnsupported:
    case Code::kOutOfRange:
    case Code::kDataLoss:
      return 400;
    case Code::kNotFound:
      return 404;
    case Code::kResourceExhausted:
      return 429;
    case Code::kUnavailable:
    case Code::kCancelled:  // by our own stopping: a client that cancels reads no answer
      return 503;
    case Code::kInternal:
      return 500;
  }
  return 500;
}

ApiError api_error(const Status& status) {
  return {.status = http_status(status.code()),
          .message = as_utf8(status.message()),
          .param = field_at_start(status.message())};
}

std::string error_json(const ApiError& error, ErrorShape shape) {
  if (shape == ErrorShape::kAnthropic)
    return fmt::format(R"({{"type":"error","error":{{"type":"{}","message":{}}}}})",
                       anthropic_type(error.status), json_quoted(error.message));
  return fmt::format(R"({{"error":{{"message":{},"type":"{}","param":{},"code":{}}}}})",
                     json_quoted(error.message), openai_type(error.status), or_null(error.param),
                     or_null(error.code));
}

HttpResponse error_response(const ApiError& error, ErrorShape shape) {
  HttpResponse response{.status = error.status, .body = error_json(error, shape)};
  // A client that waits as long as this finds others served, or the next server.
  if (error.status == 429) response.headers.push_back({"retry-after", "1"});
  if (error.status == 503) response.headers.push_back({"retry-after", "5"});
  return response;
}

ErrorShape error_shape_of(std::string_view path) {
  return path.starts_with("/v1/messages") ? ErrorShape::kAnthropic : ErrorShape::kOpenAi;
}

}  // namespace bascule
