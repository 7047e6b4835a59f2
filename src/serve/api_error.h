// Failures as clients of each API expect them: the HTTP status, and the JSON around the message.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "serve/http/message.h"

namespace bascule {

enum class ErrorShape { kOpenAi, kAnthropic };

struct ApiError {
  int status = 500;
  std::string message;
  std::string param;  // the field that the message is about; empty: none
  std::string code;   // "model_not_found"; empty: none
};

// The one place where our codes become HTTP's.
int http_status(Code code);

// `message` may begin with the name of a field, which then is `param`.
ApiError api_error(const Status& status);

std::string error_json(const ApiError& error, ErrorShape shape);
HttpResponse error_response(const ApiError& error, ErrorShape shape);

// Of the API that a path belongs to.
ErrorShape error_shape_of(std::string_view path);

}  // namespace bascule
