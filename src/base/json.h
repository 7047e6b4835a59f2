// nlohmann::ordered_json at the door: its errors as Status, its appetite bounded, keys in the
// file's order and numbers as written. Compiling it costs seconds: include this in .cc files only.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace bascule {

// Looking a key up is linear in the object's size; objects with thousands of keys are for walking.
using Json = nlohmann::ordered_json;

struct JsonLimits {
  int max_depth = 64;
  int64_t max_bytes = int64_t{64} << 20;
  int64_t max_values = 1 << 20;  // scalars, arrays and objects together
};

// Parses one JSON value and nothing after it. A key that an object holds twice is an error: which
// of the two was meant nobody knows. `where` (a file, a request) begins each message. Time and
// memory are linear in the text, and neither depth nor size overflows the stack.
Result<Json> parse_json(std::string_view text, const std::string& where, JsonLimits limits = {});

// "the string \"78\"", "the number 1.5", "an object": a value as messages tell it.
std::string describe(const Json& value);

// A field of an object, or null where it is absent or JSON null. `object` must be an object.
const Json* find_field(const Json& object, std::string_view field);

// A value as a type; the error names `field`, what was found and what is wanted.
Result<int64_t> as_int(const Json& value, std::string_view field);  // no fraction, no exponent
Result<double> as_double(const Json& value, std::string_view field);
Result<bool> as_bool(const Json& value, std::string_view field);
Result<std::string> as_string(const Json& value, std::string_view field);

}  // namespace bascule
