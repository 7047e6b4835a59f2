#include "base/json.h"

#include <fmt/format.h>

#include <unordered_set>
#include <vector>

#include "base/quote.h"

namespace bascule {
namespace {

// Builds the value while nlohmann's parser reads, and refuses what the limits forbid as it comes.
// Its own builder looks each new key up in the object so far, which is quadratic in ordered_json;
// here keys seen are in a set, and appending is constant.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  Json&& take() { return std::move(root_); }
  const Status& status() const { return status_; }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return fail(data_loss("binary value")); }  // not in JSON text
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    if (!open_.back().keys.insert(key).second)
      return fail(data_loss(fmt::format("the key {} stands twice in one object", in_quotes(key))));
    open_.back().key = std::move(key);
    return true;
  }

  bool parse_error(size_t position, const std::string&, const Json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ...": the id tells
    // nothing.
    std::string_view what = error.what();
    if (const size_t id_end = what.find("] "); id_end != what.npos) what.remove_prefix(id_end + 2);
    return fail(data_loss(fmt::format("not valid JSON at byte {}: {}", position, what)));
  }

 private:
  struct Open {
    Json* value;
    std::unordered_set<std::string> keys;  // of an object
    std::string key;                       // whose value comes next
  };

  bool fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
    return false;
  }

  // Puts the value where it belongs and returns its place.
  Json* place(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    Json& parent = *open_.back().value;
    if (parent.is_array()) return &parent.get_ref<Json::array_t&>().emplace_back(std::move(value));
    auto& members = parent.get_ref<Json::object_t&>();
    members.emplace_back(std::move(open_.back().key), std::move(value));
    return &members.back().second;
  }

  bool add(Json value) {
    if (++n_values_ > limits_.max_values)
      return fail(out_of_range(fmt::format("more than {} values", limits_.max_values)));
    place(std::move(value));
    return true;
  }

  bool open(Json value) {
    if (static_cast<int>(open_.size()) >= limits_.max_depth)
      return fail(out_of_range(fmt::format("nested deeper than {} levels", limits_.max_depth)));
    if (++n_values_ > limits_.max_values)
      return fail(out_of_range(fmt::format("more than {} values", limits_.max_values)));
    // Places stay where they are while open: a parent grows only after its child is closed.
    open_.push_back({place(std::move(value)), {}, {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  JsonLimits limits_;
  Json root_;
  std::vector<Open> open_;
  int64_t n_values_ = 0;
  Status status_;
};

}  // namespace

Result<Json> parse_json(std::string_view text, const std::string& where, JsonLimits limits) {
  if (static_cast<int64_t>(text.size()) > limits.max_bytes)
    return out_of_range(fmt::format("{}: {} bytes of JSON; at most {} are read", where, text.size(),
                                    limits.max_bytes));
  // The library takes a NUL byte for the end of the text and would ignore what follows.
  if (const size_t nul = text.find('\0'); nul != text.npos)
    return data_loss(fmt::format("{}: not valid JSON at byte {}: a NUL byte", where, nul));
  Builder builder(limits);
  if (!Json::sax_parse(text.begin(), text.end(), &builder))
    return Status(builder.status()).with_context(where);
  return builder.take();
}

std::string describe(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    case Json::value_t::string:
      return "the string " + in_quotes(value.get_ref<const std::string&>(), 60);
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float:
      return "the number " + value.dump();
    case Json::value_t::array:
      return fmt::format("a list of {}", value.size());
    case Json::value_t::object:
      return "an object";
    default:
      return value.type_name();
  }
}

const Json* find_field(const Json& object, std::string_view field) {
  const auto found = object.find(std::string(field));
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

namespace {

Status wrong_type(const Json& value, std::string_view field, std::string_view wanted) {
  return invalid_argument(fmt::format("{} is {}; {} is wanted", field, describe(value), wanted));
}

}  // namespace

Result<int64_t> as_int(const Json& value, std::string_view field) {
  if (!value.is_number_integer()) return wrong_type(value, field, "a whole number");
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX)
    return wrong_type(value, field, "a whole number below 2^63");
  return value.get<int64_t>();
}

Result<double> as_double(const Json& value, std::string_view field) {
  if (!value.is_number()) return wrong_type(value, field, "a number");
  return value.get<double>();
}

Result<bool> as_bool(const Json& value, std::string_view field) {
  if (!value.is_boolean()) return wrong_type(value, field, "true or false");
  return value.get<bool>();
}

Result<std::string> as_string(const Json& value, std::string_view field) {
  if (!value.is_string()) return wrong_type(value, field, "a string");
  return value.get_ref<const std::string&>();
}

}  // namespace bascule
