#include "serve/fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/quote.h"
#include "serve/http/message.h"

namespace bascule {
namespace {

constexpr size_t kMaxNamesTold = 16;

std::string_view name(FieldUse use) {
  switch (use) {
    case FieldUse::kSupported:
      return "yes";
    case FieldUse::kNoEffect:
      return "no effect";
    case FieldUse::kRefused:
      return "refused";
  }
  return "";
}

bool asks_for_nothing(const Json& value, const Field& field) {
  return value.is_null() || (!field.harmless.empty() && value.dump() == field.harmless);
}

// Names come from outside: only plain ones go into a header.
void note_ignored(const std::string& name, const ApiDialect& dialect,
                  std::vector<std::string>& ignored) {
  if (ignored.size() >= kMaxNamesTold) return;
  ignored.push_back(is_plain_word(name) ? name : "(unprintable)");
  if (first_time(fmt::format("{} {}", dialect.path, name.substr(0, 128))))
    log_warning("{}: the field {} has no effect", dialect.path, in_quotes(name, 64));
}

template <typename T>
Status read_integer(const Json& body, std::string_view name, T& value) {
  const Json* field = find_field(body, name);
  if (!field) return {};
  BASCULE_TRY_ASSIGN(const int64_t number, as_int(*field, name));
  if (number != int64_t(T(number)))
    return invalid_argument(fmt::format("{} is {}, which is too large", name, number));
  value = T(number);
  return {};
}

}  // namespace

const ApiDialect& api_dialect_of(std::string_view path) {
  for (const ApiDialect& dialect : api_dialects())
    if (dialect.path == path) return dialect;
  check_failed(__FILE__, __LINE__, "the path has a table of fields", std::string(path));
}

Result<std::vector<std::string>> check_fields(const Json& body, const ApiDialect& dialect) {
  std::vector<std::string> ignored;
  for (const auto& [key, value] : body.items()) {
    const auto field = std::ranges::find(dialect.fields, key, &Field::name);
    if (field == dialect.fields.end()) {
      note_ignored(key, dialect, ignored);
    } else if (field->use == FieldUse::kNoEffect) {
      if (!value.is_null()) note_ignored(key, dialect, ignored);
    } else if (field->use == FieldUse::kRefused && !asks_for_nothing(value, *field)) {
      return unsupported(fmt::format("{} is not supported: {}", key, field->note));
    }
  }
  return ignored;
}

std::string fields_markdown() {
  std::string text;
  for (const ApiDialect& dialect : api_dialects()) {
    text += fmt::format("\n### {}\n\n{}\n\n| field | supported | |\n|---|---|---|\n", dialect.path,
                        dialect.about);
    for (const Field& field : dialect.fields) {
      text += fmt::format("| `{}` | {} | {}", field.name, name(field.use), field.note);
      if (!field.harmless.empty()) text += fmt::format("; `{}` is taken", field.harmless);
      text += " |\n";
    }
  }
  return text;
}

Status read_field(const Json& body, std::string_view name, bool& value) {
  const Json* field = find_field(body, name);
  if (!field) return {};
  BASCULE_TRY_ASSIGN(value, as_bool(*field, name));
  return {};
}

Status read_field(const Json& body, std::string_view name, std::string& value) {
  const Json* field = find_field(body, name);
  if (!field) return {};
  BASCULE_TRY_ASSIGN(value, as_string(*field, name));
  return {};
}

Status read_field(const Json& body, std::string_view name, float& value) {
  const Json* field = find_field(body, name);
  if (!field) return {};
  BASCULE_TRY_ASSIGN(const double number, as_double(*field, name));
  value = float(number);
  return {};
}

Status read_field(const Json& body, std::string_view name, int32_t& value) {
  return read_integer(body, name, value);
}

Status read_field(const Json& body, std::string_view name, int64_t& value) {
  return read_integer(body, name, value);
}

Status read_field(const Json& body, std::string_view name, std::optional<int64_t>& value) {
  if (!find_field(body, name)) return {};
  return read_integer(body, name, value.emplace());
}

Status read_strings(const Json& body, std::string_view name, size_t most,
                    std::vector<std::string>& values) {
  const Json* field = find_field(body, name);
  if (!field) return {};
  if (!field->is_array()) {
    BASCULE_TRY_ASSIGN(values.emplace_back(), as_string(*field, name));
    return {};
  }
  if (field->size() > most)
    return invalid_argument(
        fmt::format("{} is a list of {}: at most {} are taken", name, field->size(), most));
  for (size_t i = 0; i < field->size(); ++i) {
    BASCULE_TRY_ASSIGN(values.emplace_back(),
                       as_string((*field)[i], fmt::format("{}[{}]", name, i)));
  }
  return {};
}

}  // namespace bascule
