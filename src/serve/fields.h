// The fields of each API's requests, in one table: what has an effect, what is taken without one,
// what is refused. docs/server-api.md is written from it. No field goes unseen: one that is not in
// the table is told in the log, once a name, and to its client in the header x-bascule-ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace bascule {

enum class FieldUse {
  kSupported,
  kNoEffect,  // taken, so that clients that always send it work; told as ignored
  kRefused,   // with another value than `harmless`
};

struct Field {
  std::string_view name;
  FieldUse use;
  std::string_view note;      // what it does here, or why not
  std::string_view harmless;  // of a refused field: the JSON value that asks for nothing
};

struct ApiDialect {
  std::string_view path;   // "/v1/completions"
  std::string_view about;  // one line for the documentation
  std::span<const Field> fields;
};

std::span<const ApiDialect> api_dialects();
const ApiDialect& api_dialect_of(std::string_view path);  // which must be there

// Refuses what the table refuses; the names of fields that have no effect. `body` is an object.
Result<std::vector<std::string>> check_fields(const Json& body, const ApiDialect& dialect);

// docs/server-api.md's tables.
std::string fields_markdown();

// A field's value where it is there and not null, else nothing is changed. The message begins with
// the field's name.
Status read_field(const Json& body, std::string_view name, bool& value);
Status read_field(const Json& body, std::string_view name, std::string& value);
Status read_field(const Json& body, std::string_view name, float& value);
Status read_field(const Json& body, std::string_view name, int32_t& value);
Status read_field(const Json& body, std::string_view name, int64_t& value);
Status read_field(const Json& body, std::string_view name, std::optional<int64_t>& value);

// One string, or a list of them.
Status read_strings(const Json& body, std::string_view name, size_t most,
                    std::vector<std::string>& values);

}  // namespace bascule
