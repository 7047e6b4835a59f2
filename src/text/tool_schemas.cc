#include "text/tool_schemas.h"

#include <fmt/format.h>

#include "base/json.h"

namespace bascule {
namespace {

constexpr uint8_t kString = 1;
constexpr uint8_t kNumber = 2;
constexpr uint8_t kBoolean = 4;
constexpr uint8_t kArray = 8;
constexpr uint8_t kObject = 16;
constexpr uint8_t kNull = 32;
constexpr uint8_t kAny = 63;

// References may form a ring, and schemas may be wide: past this depth anything is allowed.
constexpr int kMaxDepth = 8;

uint8_t type_of(const Json& value) {
  if (value.is_string()) return kString;
  if (value.is_number()) return kNumber;
  if (value.is_boolean()) return kBoolean;
  if (value.is_array()) return kArray;
  return value.is_object() ? kObject : kNull;
}

uint8_t type_named(const Json& name) {
  if (name == "string") return kString;
  if (name == "integer" || name == "number") return kNumber;
  if (name == "boolean") return kBoolean;
  if (name == "array") return kArray;
  if (name == "object") return kObject;
  return name == "null" ? kNull : kAny;
}

const Json* member(const Json* value, std::string_view key) {
  return value && value->is_object() ? find_field(*value, key) : nullptr;
}

// "#/$defs/city" in `root`; null where it leads nowhere.
const Json* resolve(const Json& root, std::string_view reference) {
  if (!reference.starts_with("#/")) return nullptr;
  const Json* at = &root;
  reference.remove_prefix(2);
  while (at && !reference.empty()) {
    const size_t end = std::min(reference.find('/'), reference.size());
    at = member(at, reference.substr(0, end));
    reference.remove_prefix(std::min(end + 1, reference.size()));
  }
  return at;
}

// The types that a schema allows, as far as it says so.
class Types {
 public:
  explicit Types(const Json& root) : root_(root) {}

  uint8_t of(const Json* schema, int depth = 0) {
    if (!schema || !schema->is_object() || depth == kMaxDepth || ++n_visited_ > kMaxVisited) {
      return kAny;
    }
    if (const Json* type = member(schema, "type")) return named(*type);
    if (const Json* values = member(schema, "enum"); values && values->is_array()) {
      uint8_t types = 0;
      for (const Json& value : *values) types |= type_of(value);
      return types ? types : kAny;
    }
    if (const auto value = schema->find("const"); value != schema->end()) return type_of(*value);
    if (const Json* reference = member(schema, "$ref"); reference && reference->is_string()) {
      return of(resolve(root_, reference->get_ref<const std::string&>()), depth + 1);
    }
    for (const char* key : {"anyOf", "oneOf", "allOf"}) {
      if (const Json* choices = member(schema, key)) return any_of(*choices, depth);
    }
    return kAny;
  }

 private:
  static constexpr int kMaxVisited = 1000;  // of one argument

  static uint8_t named(const Json& type) {
    if (!type.is_array()) return type_named(type);
    uint8_t types = 0;
    for (const Json& name : type) types |= type_named(name);
    return types ? types : kAny;
  }

  uint8_t any_of(const Json& choices, int depth) {
    if (!choices.is_array() || choices.empty()) return kAny;
    uint8_t types = 0;
    for (const Json& choice : choices) types |= of(&choice, depth + 1);
    return types;
  }

  const Json& root_;
  int n_visited_ = 0;
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

}  // namespace

Result<ToolSchemas> ToolSchemas::from_json(std::string_view tools) {
  BASCULE_TRY_ASSIGN(const Json list, parse_json(tools, "tools"));
  if (!list.is_array()) {
    return invalid_argument(fmt::format("tools is {}; a list is wanted", describe(list)));
  }
  ToolSchemas schemas;
  for (size_t i = 0; i < list.size(); ++i) {
    const Json* function = member(&list[i], "function");
    if (!function) function = &list[i];
    const Json* name = member(function, "name");
    if (!name || !name->is_string()) {
      return invalid_argument(fmt::format("tools[{}] has no name", i));
    }
    const Json* root = member(function, "parameters");
    if (!root) root = member(function, "input_schema");
    Arguments arguments;
    if (const Json* properties = member(root, "properties");
        properties && properties->is_object()) {
      for (const auto& [key, schema] : properties->items()) {
        arguments[key] = Types(*root).of(&schema);
      }
    }
    const std::string& tool = name->get_ref<const std::string&>();
    schemas.longest_name_ = std::max(schemas.longest_name_, tool.size());
    schemas.tools_[tool] = std::move(arguments);
  }
  return schemas;
}

bool ToolSchemas::has_prefix(std::string_view start) const {
  const auto at = tools_.lower_bound(start);
  return at != tools_.end() && at->first.starts_with(start);
}

std::string ToolSchemas::argument_json(std::string_view tool, std::string_view key,
                                       std::string_view text) const {
  TypeSet allowed = kAny;
  if (const auto arguments = tools_.find(tool); arguments != tools_.end()) {
    const auto found = arguments->second.find(key);
    if (found != arguments->second.end()) allowed = found->second;
  }
  if (allowed == kString) return json_string(text);
  const auto value = parse_json(text, "");
  if (!value.ok() || value->is_string()) return json_string(text);
  // Of a type that the schema excludes: a string where one may stand, else what the model wrote.
  const bool is_allowed = (type_of(*value) & allowed) != 0 || (allowed & kString) == 0;
  return is_allowed ? std::string(trimmed(text)) : json_string(text);
}

std::string json_string(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace bascule
