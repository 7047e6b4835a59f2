#define TOML_EXCEPTIONS 0  // failures are values here
// toml++ 3.3.0 asserts digits where a malformed date has none, before it looks and tells it.
#define TOML_ASSERT(condition) static_assert(true)
#include "base/options.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/quote.h"

namespace bascule {
namespace {

enum Rank { kBuiltInRank, kModelRank, kFileRank, kEnvironmentRank, kFlagRank };

constexpr size_t kMaxFileBytes = size_t{1} << 20;  // of a configuration file

// --help is a question, not a setting; and a file cannot name another one.
bool may_come_from_environment(const OptionRow& row) { return row.name != "help"; }
bool may_come_from_file(const OptionRow& row) { return row.name != "help" && row.name != "config"; }

std::vector<std::string> words(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> result;
  for (std::string word; in >> word;) result.push_back(word);
  return result;
}

std::string environment_name(const OptionRow& row) {
  std::string result = "BASCULE_";
  for (const char c : row.name) result += c == '-' ? '_' : char(std::toupper(c));
  return result;
}

template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::string range_text(const OptionRow& row) {
  if (row.least && row.most) return fmt::format(" from {} to {}", *row.least, *row.most);
  if (row.least) return fmt::format(" of at least {}", *row.least);
  return "";
}

bool in_range(const OptionRow& row, double value) {
  return std::isfinite(value) && (!row.least || value >= *row.least) &&
         (!row.most || value <= *row.most);
}

// What the row wants instead of `text`; empty: it is fine.
std::string complaint(const OptionRow& row, const std::string& text) {
  switch (row.kind) {
    case OptionKind::kFlag:
      return text == "true" || text == "false" ? "" : "true or false";
    case OptionKind::kInteger: {
      const auto value = parse_number<int64_t>(text);
      if (value && in_range(row, double(*value))) return "";
      return "a whole number" + range_text(row);
    }
    case OptionKind::kNumber: {
      const auto value = parse_number<double>(text);
      return value && in_range(row, *value) ? "" : "a number" + range_text(row);
    }
    case OptionKind::kBytes:
      return parse_bytes(text).ok() ? "" : "a size such as 4GiB or 500MB";
    case OptionKind::kText:
    case OptionKind::kList: {
      const std::vector<std::string> choices = words(row.choices);
      if (choices.empty() || std::ranges::find(choices, text) != choices.end()) return "";
      return fmt::format("one of {}", fmt::join(choices, ", "));
    }
  }
  return "";
}

Status unknown_name(const std::string& where, std::string_view word) {
  std::vector<std::string> known;
  for (const OptionRow& row : option_rows()) known.emplace_back(row.name);
  const std::string near = nearest(word, known);
  return invalid_argument(fmt::format("{}: there is no option {}{}", where, in_quotes(word, 64),
                                      near.empty() ? "" : fmt::format("; is it \"{}\"?", near)));
}

Result<std::string> text_of(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto flag = node.value_exact<bool>()) return std::string(*flag ? "true" : "false");
  if (const auto integer = node.value_exact<int64_t>()) return fmt::format("{}", *integer);
  if (const auto number = node.value_exact<double>()) return fmt::format("{}", *number);
  return invalid_argument("a text, a number, true or false is wanted");
}

// A TOML value as an option's texts.
Result<std::vector<std::string>> texts_of(const OptionRow& row, const toml::node& node) {
  const toml::array* array = row.kind == OptionKind::kList ? node.as_array() : nullptr;
  std::vector<std::string> texts;
  if (!array) {
    BASCULE_TRY_ASSIGN(texts.emplace_back(), text_of(node));
    return texts;
  }
  for (const toml::node& element : *array) {
    BASCULE_TRY_ASSIGN(texts.emplace_back(), text_of(element));
  }
  return texts;
}

}  // namespace

const OptionRow* find_option(std::string_view name) {
  for (const OptionRow& row : option_rows()) {
    if (row.name == name) return &row;
    const std::vector<std::string> aliases = words(row.aliases);
    if (std::ranges::find(aliases, name) != aliases.end()) return &row;
  }
  return nullptr;
}

bool applies(const OptionRow& row, std::string_view command) {
  const std::vector<std::string> commands = words(row.commands);
  return row.commands == "*" || std::ranges::find(commands, command) != commands.end();
}

Options::Options() {
  for (const OptionRow& row : option_rows()) {
    Value value{.texts = {}, .origin = "built-in", .rank = kBuiltInRank};
    if (!row.built_in.empty()) value.texts.emplace_back(row.built_in);
    values_.emplace(row.name, std::move(value));
  }
}

Status Options::set(const OptionRow& row, std::vector<std::string> texts, std::string origin,
                    int rank) {
  if (row.kind != OptionKind::kList && texts.size() != 1)
    return invalid_argument(
        fmt::format("{}: {} values for --{}, which takes one", origin, texts.size(), row.name));
  for (const std::string& text : texts) {
    const std::string wanted = complaint(row, text);
    if (!wanted.empty())
      return invalid_argument(fmt::format("{}: --{} is {}; {} is wanted", origin, row.name,
                                          in_quotes(text, 64), wanted));
  }
  Value& value = values_.find(row.name)->second;
  if (rank >= value.rank) value = {std::move(texts), std::move(origin), rank};
  return {};
}

Status Options::set_flag(std::string_view name, std::vector<std::string> texts) {
  const OptionRow* row = find_option(name);
  if (!row) return unknown_name("command line", name);
  return set(*row, std::move(texts), "flag", kFlagRank);
}

Status Options::set_environment(const std::map<std::string, std::string>& environment) {
  std::map<std::string, const OptionRow*> rows;
  std::vector<std::string> known;
  for (const OptionRow& row : option_rows()) {
    if (!may_come_from_environment(row)) continue;
    rows[environment_name(row)] = &row;
    known.push_back(environment_name(row));
  }
  for (const auto& [name, text] : environment) {
    if (!name.starts_with("BASCULE_")) continue;
    const auto found = rows.find(name);
    if (found == rows.end()) {
      const std::string near = nearest(name, known);
      warnings_.push_back(fmt::format("environment: {} is no option and has no effect{}", name,
                                      near.empty() ? "" : fmt::format("; is it {}?", near)));
      continue;
    }
    BASCULE_TRY(set(*found->second, {text}, "environment " + name, kEnvironmentRank));
  }
  return {};
}

Status Options::set_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found(fmt::format("--config {}: cannot be opened", path.string()));
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), std::streamsize(text.size()));
  if (!file.eof() || file.bad() || std::filesystem::is_directory(path))
    return invalid_argument(fmt::format("--config {}: no readable file of at most {} bytes",
                                        path.string(), kMaxFileBytes));
  text.resize(size_t(file.gcount()));
  return set_file_text(text, path.string());
}

Status Options::set_file_text(std::string_view toml, const std::string& path) {
  const toml::parse_result parsed = toml::parse(toml, path);
  if (!parsed)
    return invalid_argument(fmt::format("file {}:{}: {}", path, parsed.error().source().begin.line,
                                        parsed.error().description()));
  for (const auto& [key, node] : parsed.table()) {
    const std::string origin = fmt::format("file {}:{}", path, node.source().begin.line);
    const OptionRow* row = find_option(key.str());
    if (!row || !may_come_from_file(*row)) return unknown_name(origin, key.str());
    BASCULE_TRY_ASSIGN(std::vector<std::string> texts,
                       texts_of(*row, node).with_context(fmt::format("{}: {}", origin, key.str())));
    BASCULE_TRY(set(*row, std::move(texts), origin, kFileRank));
  }
  return {};
}

Status Options::set_model(std::string_view name, std::string text, const std::string& file) {
  const OptionRow* row = find_option(name);
  BASCULE_CHECK(row);
  return set(*row, {std::move(text)}, "model " + file, kModelRank);
}

const Options::Value& Options::value(std::string_view name) const {
  const auto found = values_.find(name);
  BASCULE_CHECK(found != values_.end());
  return found->second;
}

bool Options::flag(std::string_view name) const { return has(name) && text(name) == "true"; }

std::string Options::text(std::string_view name) const {
  const Value& v = value(name);
  return v.texts.empty() ? "" : v.texts[0];
}

int64_t Options::integer(std::string_view name) const {
  const auto value = parse_number<int64_t>(text(name));
  BASCULE_CHECK(value);
  return *value;
}

double Options::number(std::string_view name) const {
  const auto value = parse_number<double>(text(name));
  BASCULE_CHECK(value);
  return *value;
}

int64_t Options::bytes(std::string_view name) const {
  BASCULE_CHECK(has(name));
  return parse_bytes(text(name)).value();
}

Result<int64_t> parse_bytes(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1},      {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, size_t(text.data() + text.size() - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const auto& [name, factor] : kUnits) {
    const double n_bytes = value * factor;
    if (error == std::errc() && unit == name && n_bytes >= 0 && n_bytes < 0x1p62)
      return int64_t(n_bytes);
  }
  return invalid_argument(fmt::format("{} is no size; 4GiB or 500MB are", in_quotes(text, 64)));
}

Result<std::vector<int32_t>> parse_ids(std::string_view text) {
  std::vector<int32_t> ids;
  size_t at = 0;
  const auto separates = [](char c) {
    return c == ',' || std::isspace(static_cast<unsigned char>(c));
  };
  while (at < text.size()) {
    if (separates(text[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < text.size() && !separates(text[end])) ++end;
    const std::string_view part = text.substr(at, end - at);
    const auto id = parse_number<int32_t>(part);
    if (!id) return invalid_argument(fmt::format("{} is no token id", in_quotes(part, 40)));
    ids.push_back(*id);
    at = end;
  }
  return ids;
}

std::string nearest(std::string_view word, std::span<const std::string> known) {
  // Levenshtein's distance, by rows; longer words would only cost time.
  const auto distance = [&](std::string_view other) {
    std::vector<size_t> row(other.size() + 1);
    for (size_t j = 0; j <= other.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = std::exchange(row[0], i);
      for (size_t j = 1; j <= other.size(); ++j) {
        const size_t replaced = diagonal + (word[i - 1] != other[j - 1]);
        diagonal = std::exchange(row[j], std::min({replaced, row[j] + 1, row[j - 1] + 1}));
      }
    }
    return row.back();
  };
  if (word.size() > 64) return "";
  std::string best;
  size_t best_distance = word.size() / 3 + 2;
  for (const std::string& candidate : known) {
    const size_t d = distance(candidate);
    if (d < best_distance) best_distance = d, best = candidate;
  }
  return best;
}

}  // namespace bascule
