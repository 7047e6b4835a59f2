#include "model/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "base/json.h"
#include "base/quote.h"

namespace bascule {
namespace {

constexpr std::array kParts = {"embedding", "attention",      "indexer", "dense", "router",
                               "experts",   "shared experts", "norms",   "head",  "draft"};

struct Total {
  int64_t n_tensors = 0, n_parameters = 0, n_bytes = 0;
  std::map<std::string, int64_t> format_bytes;  // codes and scales of each

  void add(const TensorReport& t) {
    ++n_tensors;
    n_parameters += t.n_parameters;
    n_bytes += t.size_bytes;
    if (!t.format.empty()) format_bytes[t.format] += t.size_bytes;
  }
};

struct Totals {
  std::map<std::string, Total> parts;  // of the loaded tensors
  Total loaded, skipped;

  explicit Totals(const WeightsReport& report) {
    for (const TensorReport& t : report.tensors) {
      if (t.fate == "skipped") skipped.add(t);
      if (t.fate != "loaded") continue;
      parts[t.part].add(t);
      loaded.add(t);
    }
  }
};

bool is_fault(const TensorReport& t) { return t.fate != "loaded" && t.fate != "skipped"; }

// 1234567 as "1,234,567".
std::string with_commas(int64_t n) {
  return n < 1000 ? fmt::format("{}", n) : fmt::format("{},{:03}", with_commas(n / 1000), n % 1000);
}

// {0, 1, 2, 6} as "0-2,6"; braces where it is more than one number.
std::string number_set(const std::set<int64_t>& numbers) {
  std::string text;
  for (auto it = numbers.begin(); it != numbers.end();) {
    const int64_t first = *it;
    int64_t last = first;
    for (++it; it != numbers.end() && *it == last + 1; ++it) last = *it;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (last > first) text += fmt::format("{}{}", last == first + 1 ? "," : "-", last);
  }
  return numbers.size() == 1 ? text : fmt::format("{{{}}}", text);
}

// A name with its numbers taken out: "model.layers.", 3, ".mlp.experts.", 7, ".up_proj.weight".
struct NumberedName {
  std::vector<std::string> texts;
  std::vector<int64_t> numbers;

  explicit NumberedName(std::string_view name) {
    texts.emplace_back();
    for (size_t i = 0; i < name.size();) {
      const size_t end = number_end(name, i);
      if (end == i) {
        texts.back() += name[i++];
        continue;
      }
      int64_t n = 0;
      for (; i < end; ++i) n = n * 10 + (name[i] - '0');
      numbers.push_back(n);
      texts.emplace_back();
    }
  }

 private:
  // Numbers stand between dots ("q_b2" has none) and are not absurdly long.
  static size_t number_end(std::string_view name, size_t i) {
    if (i == 0 || name[i - 1] != '.') return i;
    size_t end = i;
    while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
    const bool is_number = end < name.size() && name[end] == '.' && end - i <= 9;
    return is_number ? end : i;
  }
};

// Like tensors, one line: same names but for the numbers, same type, shape and fate.
struct Group {
  std::vector<std::string> texts;
  std::vector<std::set<int64_t>> numbers;
  std::vector<const TensorReport*> members;

  // Every combination of the numbers is a member, so that their sets name all of them and no other.
  bool is_whole() const {
    size_t n = 1;
    for (const auto& set : numbers) n *= set.size();
    return n == members.size();
  }
  std::string name() const {
    std::string name = texts[0];
    for (size_t i = 0; i < numbers.size(); ++i) name += number_set(numbers[i]) + texts[i + 1];
    return name;
  }
};

std::vector<Group> groups_of(const WeightsReport& report) {
  using Key = std::tuple<std::vector<std::string>, std::string, std::vector<int64_t>, std::string,
                         std::string, std::string>;
  std::map<Key, size_t> places;
  std::vector<Group> groups;
  for (const TensorReport& t : report.tensors) {
    const NumberedName name(t.name);
    const Key key{name.texts, t.dtype, t.shape, t.fate, t.reason, t.part};
    const auto [place, is_new] = places.emplace(key, groups.size());
    if (is_new)
      groups.push_back({name.texts, std::vector<std::set<int64_t>>(name.numbers.size()), {}});
    Group& group = groups[place->second];
    for (size_t i = 0; i < name.numbers.size(); ++i) group.numbers[i].insert(name.numbers[i]);
    group.members.push_back(&t);
  }
  return groups;
}

std::string shape_text(const TensorReport& t) {
  return fmt::format("{}[{}]", t.dtype.empty() ? "" : t.dtype + " ", fmt::join(t.shape, ", "));
}

std::string model_text(const ModelConfig& c) {
  const int64_t n_sparse = std::count(c.is_sparse.begin(), c.is_sparse.end(), true);
  std::string text;
  const auto line = [&](std::string_view what, const std::string& is) {
    text += fmt::format("  {:<12}{}\n", what, is);
  };
  line("layers", fmt::format("{}: {} dense, {} of experts{}", c.n_layers, c.n_layers - n_sparse,
                             n_sparse, c.n_draft_layers > 0 ? ", and a draft layer" : ""));
  line("sizes", fmt::format("hidden {}, vocabulary {}, {} positions", c.d_model, c.vocab_size,
                            c.max_positions));
  line("attention",
       fmt::format("{} heads, keys of {} + {} rotated, values of {}, latents of {} and "
                   "{}",
                   c.n_heads, c.d_nope, c.d_rope, c.d_v, c.q_rank, c.kv_rank));
  line("rope",
       fmt::format("theta {}, {}{}", c.rope_theta, c.rope_interleaved ? "neighbours" : "halves",
                   c.yarn ? fmt::format(", YaRN x{}", c.yarn->factor) : ""));
  line("indexer", fmt::format("{} heads of {}, top {}, on {} of {} layers, rope by {}",
                              c.n_index_heads, c.d_index, c.index_topk, c.n_index_layers(),
                              c.n_layers, c.index_rope_interleaved ? "neighbours" : "halves"));
  line("dense", fmt::format("{}", c.d_dense));
  line("experts", fmt::format("{} of {}, {} a token, {} shared", c.n_experts, c.d_expert,
                              c.n_active_experts, c.n_shared_experts));
  line("eps", fmt::format("norms {}, latent norms {}, index keys {}", c.norm_eps, c.latent_norm_eps,
                          c.index_norm_eps));
  return text;
}

// What a line says of its tensors' fate.
std::string fate_text(const TensorReport& t) {
  if (t.fate == "loaded") return t.part;
  return t.reason.empty() ? t.fate : t.fate + ": " + t.reason;
}

// The groups whose fate is as asked, a line each; one a tensor where the sets of numbers would name
// tensors that are not in the group.
std::string tensors_text(const std::vector<Group>& groups, bool (*is_wanted)(const TensorReport&)) {
  std::vector<std::array<std::string, 4>> rows;
  const auto add = [&](const std::string& name, size_t n, const TensorReport& t) {
    const std::string safe = in_quotes(name);
    rows.push_back(
        {safe.substr(1, safe.rfind('"') - 1), fmt::format("{}", n), shape_text(t), fate_text(t)});
  };
  for (const Group& g : groups) {
    if (!is_wanted(*g.members[0])) continue;
    if (g.is_whole()) {
      add(g.name(), g.members.size(), *g.members[0]);
    } else {
      for (const TensorReport* t : g.members) add(t->name, 1, *t);
    }
  }
  std::array<size_t, 3> widths = {};
  for (const auto& row : rows)
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows)
    text += fmt::format("  {:<{}}  {:>{}} x {:<{}}  {}\n", row[0], widths[0], row[1], widths[1],
                        row[2], widths[2], row[3]);
  return text;
}

std::string totals_text(const Totals& totals) {
  std::string text = fmt::format("  {:<16}{:>9}{:>20}{:>22}  {}\n", "part", "tensors", "parameters",
                                 "bytes", "formats");
  const auto line = [&](std::string_view name, const Total& t) {
    std::vector<std::string> formats;
    for (const auto& [format, bytes] : t.format_bytes)
      formats.push_back(t.format_bytes.size() == 1 ? format : format + " " + with_commas(bytes));
    text +=
        fmt::format("  {:<16}{:>9}{:>20}{:>22}  {}\n", name, with_commas(t.n_tensors),
                    with_commas(t.n_parameters), with_commas(t.n_bytes), fmt::join(formats, " + "));
  };
  for (const char* part : kParts)
    if (const auto found = totals.parts.find(part); found != totals.parts.end())
      line(part, found->second);
  line("total", totals.loaded);
  if (totals.skipped.n_tensors > 0) line("skipped", totals.skipped);
  return text;
}

std::string section(std::string_view title, const std::string& body) {
  return body.empty() ? "" : fmt::format("\n{}\n{}", title, body);
}

std::string lines(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& line : list) text += "  " + line + "\n";
  return text;
}

}  // namespace

Result<Inspection> inspect(const std::filesystem::path& folder, const InspectOptions& options,
                           const std::function<bool(int64_t, int64_t)>& progress) {
  BASCULE_TRY_ASSIGN(const auto checkpoint, Checkpoint::open(folder));
  BASCULE_TRY_ASSIGN(const std::string text, checkpoint->read_text("config.json"));
  Inspection result{.folder = folder};
  BASCULE_TRY_ASSIGN(result.config, parse_config(text, (folder / "config.json").string()));
  if (options.latent_norm_eps) result.config.latent_norm_eps = *options.latent_norm_eps;
  if (options.index_norm_eps) result.config.index_norm_eps = *options.index_norm_eps;
  result.weights = account(*checkpoint, result.config);
  if (options.check_values) {
    BASCULE_TRY_ASSIGN(result.non_finite, find_non_finite(*checkpoint, result.config, progress));
  }
  return result;
}

std::string inspection_text(const Inspection& inspection) {
  const ModelConfig& c = inspection.config;
  const WeightsReport& w = inspection.weights;
  std::string text =
      fmt::format("{}: {} ({})\n", inspection.folder.string(), c.architecture, c.model_type);
  text += model_text(c);
  text += section("Not in config.json, taken as this family has it:", lines(c.defaulted));
  const std::vector<Group> groups = groups_of(w);
  text += section("Tensors:", tensors_text(groups, [](const auto& t) { return !is_fault(t); }));
  text += section("Totals of what is loaded:", totals_text(Totals(w)));
  text += section("Notices:", lines(w.notices));
  text += section("Faults:", tensors_text(groups, is_fault));
  if (inspection.non_finite) text += section("Not finite:", lines(*inspection.non_finite));
  text += fmt::format("\n{} of {} tensors found, {} skipped, {} faults", with_commas(w.n_loaded),
                      with_commas(w.n_expected), with_commas(w.n_skipped), with_commas(w.n_errors));
  if (inspection.non_finite)
    text += fmt::format(", {} with NaN or infinity", inspection.non_finite->size());
  return text + (w.n_errors == 0 ? ".\n" : ": this model does not load.\n");
}

namespace {

// The double that prints as the float does: 1e-05, not 9.999999747378752e-06.
double shortest(float x) { return std::strtod(fmt::format("{}", x).c_str(), nullptr); }

}  // namespace

std::string inspection_json(const Inspection& inspection) {
  const ModelConfig& c = inspection.config;
  const WeightsReport& w = inspection.weights;
  const Totals totals(w);
  const auto total_json = [](const Total& t) {
    return Json{{"tensors", t.n_tensors},
                {"parameters", t.n_parameters},
                {"bytes", t.n_bytes},
                {"formats", t.format_bytes}};
  };
  Json parts = Json::object();
  for (const char* part : kParts)
    if (const auto found = totals.parts.find(part); found != totals.parts.end())
      parts[part] = total_json(found->second);
  Json tensors = Json::array();
  for (const TensorReport& t : w.tensors)
    tensors.push_back({{"name", t.name},
                       {"dtype", t.dtype.empty() ? Json() : Json(t.dtype)},
                       {"format", t.format.empty() ? Json() : Json(t.format)},
                       {"shape", t.shape},
                       {"bytes", t.size_bytes},
                       {"file", t.file.empty() ? Json() : Json(t.file)},
                       {"fate", t.fate},
                       {"reason", t.reason.empty() ? Json() : Json(t.reason)},
                       {"part", t.part.empty() ? Json() : Json(t.part)}});
  Json json = {{"model", inspection.folder.string()},
               {"model_type", c.model_type},
               {"architecture", c.architecture},
               {"eps",
                {{"norm", shortest(c.norm_eps)},
                 {"latent_norm", shortest(c.latent_norm_eps)},
                 {"index_norm", shortest(c.index_norm_eps)}}},
               {"defaulted", c.defaulted},
               {"sound", inspection.is_sound()},
               {"expected", w.n_expected},
               {"loaded", w.n_loaded},
               {"skipped", w.n_skipped},
               {"errors", w.n_errors},
               {"total", total_json(totals.loaded)},
               {"parts", std::move(parts)},
               {"notices", w.notices},
               {"non_finite", inspection.non_finite ? Json(*inspection.non_finite) : Json()},
               {"tensors", std::move(tensors)}};
  // A folder's name may be no UTF-8; then its odd bytes are replaced.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace bascule
