#include "base/status.h"

namespace bascule {

const char* name(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kNotFound:
      return "not found";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kOutOfRange:
      return "out of range";
    case Code::kResourceExhausted:
      return "resource exhausted";
    case Code::kDataLoss:
      return "data loss";
    case Code::kCancelled:
      return "cancelled";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kInternal:
      return "internal error";
  }
  return "unknown";
}

}  // namespace bascule
