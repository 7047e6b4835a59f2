#include "apps/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json.h"

namespace bascule {
namespace {

// The rows of one site, band by band. On the CPU every band has the same kernel.
struct SiteRows {
  std::vector<const PlannedRow*> bands;
  const PlannedRow& first() const { return *bands.front(); }
};

std::vector<SiteRows> by_site(const Plan& plan) {
  std::vector<SiteRows> sites;
  for (const PlannedRow& row : plan.rows()) {
    if (sites.empty() || sites.back().first().site != row.site) sites.emplace_back();
    sites.back().bands.push_back(&row);
  }
  return sites;
}

// The sites that --explain asks for.
Result<std::vector<SiteRows>> sites_of(const Plan& plan, const std::string& op_or_site) {
  std::vector<SiteRows> found;
  std::set<std::string> ops, sites;
  for (SiteRows& site : by_site(plan)) {
    ops.insert(site.first().op);
    sites.insert(site.first().site);
    if (site.first().op == op_or_site || site.first().site == op_or_site)
      found.push_back(std::move(site));
  }
  if (!found.empty()) return found;
  return not_found(fmt::format("--explain {}: the plan has the ops {}, at the sites {}", op_or_site,
                               fmt::join(ops, ", "), fmt::join(sites, ", ")));
}

std::string amount(double value, const char* unit) {
  const std::pair<double, const char*> prefixes[] = {
      {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [size, prefix] : prefixes)
    if (value >= size) return fmt::format("{:.3g} {}{}", value / size, prefix, unit);
  return fmt::format("{:.3g} {}", value, unit);
}

// What something costs, and the least time in which this machine can do it: no row is faster than
// its bytes can be read or its operations made, whichever takes longer (the roofline of Williams,
// Waterman and Patterson, 2009).
struct Least {
  Cost cost;
  double seconds = 0;

  Least& operator+=(const Least& other) {
    cost.bytes += other.cost.bytes;
    cost.flops += other.cost.flops;
    seconds += other.seconds;
    return *this;
  }
};

Least least(const PlannedRow& row, double launches, const Peaks::Of& peak) {
  const Cost cost = {.bytes = launches * row.cost.bytes, .flops = launches * row.cost.flops};
  return {cost, std::max(cost.bytes / peak.read_bytes_per_second,
                         cost.flops / peak.fma_flops_per_second)};
}

Least least_of_step(const Plan& plan, int band, const Peaks::Of& peak) {
  Least total;
  for (const PlannedRow& row : plan.rows())
    if (row.band == band) total += least(row, row.launches, peak);
  return total;
}

std::string time_text(double seconds) {
  const std::pair<double, const char*> prefixes[] = {{1, ""}, {1e-3, "m"}, {1e-6, "u"}};
  for (const auto& [size, prefix] : prefixes)
    if (seconds >= size) return fmt::format("{:.3g} {}s", seconds / size, prefix);
  return fmt::format("{:.3g} ns", seconds / 1e-9);
}

std::string text_of(const Least& l) {
  return fmt::format("{:>9} {:>11} {:>8}", amount(l.cost.bytes, "B"), amount(l.cost.flops, "FLOP"),
                     time_text(l.seconds));
}

std::string_view name(KernelMode mode) {
  switch (mode) {
    case KernelMode::kAuto:
      return "auto";
    case KernelMode::kReference:
      return "reference";
    case KernelMode::kFast:
      return "fast";
  }
  return "unknown";
}

std::vector<std::string> notices(const LoadedModel& model, const EngineSetup& setup) {
  std::vector<std::string> all = model.notices;
  all.insert(all.end(), setup.memory.notices.begin(), setup.memory.notices.end());
  return all;
}

std::string head_text(const LoadedModel& model, const EngineSetup& setup, const Peaks::Of& peak) {
  const EngineOptions& o = setup.options;
  std::string isas;
  for (const Isa isa : setup.machine.isas) isas += fmt::format(" {}", name(isa));
  return fmt::format(
      "model     {} ({})\n"
      "machine   {};{}; {} thread(s)\n"
      "peaks     reads {}/s, {}/s of float products and sums, measured here{}\n"
      "layout    tp {}, ep {}, dp {}: {} rank(s)\n"
      "types     activations {} ({}), cache {}; kernels {}\n",
      model.checkpoint->folder().string(), model.config.model_type, setup.machine.processor, isas,
      o.n_threads, amount(peak.read_bytes_per_second, "B"),
      amount(peak.fma_flops_per_second, "FLOP"),
      peak.disturbed ? " beside other load, so too low" : "", o.layout.tp, o.layout.ep, o.layout.dp,
      o.layout.world(), name(*o.activations), name(*o.scheme), name(*o.kv_dtype), name(o.kernels));
}

std::string ops_text(const Plan& plan, const Peaks::Of& peak) {
  const int last = plan.n_bands() - 1;
  const int64_t n_tokens = by_site(plan).front().bands.back()->n_tokens;
  std::string text = fmt::format(
      "Ops of a step on rank 0, all launches together: bytes, operations, and the least time for "
      "both "
      "at this machine's peaks\n"
      "{:<32} {:>5}  {:<30} {:<10} {:>30}  {:>30}  shape\n",
      "site", "times", "kernel", "origin", "at 1 token", fmt::format("at {} tokens", n_tokens));
  for (const SiteRows& site : by_site(plan)) {
    const PlannedRow& row = site.first();
    text += fmt::format("{:<32} {:>5}  {:<30} {:<10} {}  {}  {}\n", row.site, row.launches,
                        row.kernel, name(row.origin), text_of(least(row, row.launches, peak)),
                        text_of(least(*site.bands.back(), row.launches, peak)), row.shape);
  }
  return text + fmt::format("{:<81} {}  {}\n", "in all", text_of(least_of_step(plan, 0, peak)),
                            text_of(least_of_step(plan, last, peak)));
}

Json to_json(const PlannedRow& row, const Peaks::Of& peak) {
  return {{"site", row.site},           {"op", row.op},
          {"shape", row.shape},         {"band_tokens", row.n_tokens},
          {"launches", row.launches},   {"kernel", row.kernel},
          {"origin", name(row.origin)}, {"batch_invariant", row.batch_invariant},
          {"refused", row.refused},     {"bytes", row.cost.bytes},
          {"flops", row.cost.flops},    {"least_seconds", least(row, 1, peak).seconds}};
}

Json to_json(const MemoryPlan& memory) {
  Json json = {{"available_bytes", memory.available_bytes},
               {"total_bytes", memory.total_bytes()},
               {"max_model_len", memory.max_context},
               {"kv_pages", memory.n_pages},
               {"kv_token_bytes", memory.kv_token_bytes},
               {"pools", Json::array()},
               {"activations", Json::array()}};
  for (const MemoryPool& pool : memory.pools)
    json["pools"].push_back(
        {{"name", pool.name}, {"formula", pool.formula}, {"bytes", pool.bytes}});
  for (const Arena::Entry& entry : memory.activations)
    json["activations"].push_back({{"name", entry.name}, {"bytes", entry.size_bytes}});
  return json;
}

// A folder's name may be no UTF-8.
std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string plan_text(const LoadedModel& model, const EngineSetup& setup, const Peaks::Of& peak) {
  std::string text = head_text(model, setup, peak);
  for (const std::string& notice : notices(model, setup))
    text += fmt::format("note      {}\n", notice);
  return text + "\nMemory\n" + setup.memory.text() + "\n" + ops_text(setup.plans[0], peak);
}

std::string plan_json(const LoadedModel& model, const EngineSetup& setup, const Peaks::Of& peak) {
  const EngineOptions& o = setup.options;
  Json json = {{"model", model.checkpoint->folder().string()},
               {"model_type", model.config.model_type},
               {"processor", setup.machine.processor},
               {"instruction_sets", Json::array()},
               {"threads", o.n_threads},
               {"peaks",
                {{"read_bytes_per_second", peak.read_bytes_per_second},
                 {"fma_flops_per_second", peak.fma_flops_per_second},
                 {"disturbed", peak.disturbed}}},
               {"layout", {{"tp", o.layout.tp}, {"ep", o.layout.ep}, {"dp", o.layout.dp}}},
               {"activations", name(*o.activations)},
               {"activation_scheme", name(*o.scheme)},
               {"kv_cache_dtype", name(*o.kv_dtype)},
               {"kernels", name(o.kernels)},
               {"notices", notices(model, setup)},
               {"memory", to_json(setup.memory)},
               {"ops", Json::array()}};
  for (const Isa isa : setup.machine.isas) json["instruction_sets"].push_back(name(isa));
  for (const PlannedRow& row : setup.plans[0].rows()) json["ops"].push_back(to_json(row, peak));
  return json_text(json);
}

Result<std::string> explanation_text(const Plan& plan, const std::string& op_or_site,
                                     const Peaks::Of& peak) {
  BASCULE_TRY_ASSIGN(const std::vector<SiteRows> sites, sites_of(plan, op_or_site));
  std::string text;
  for (const SiteRows& site : sites) {
    const PlannedRow& row = site.first();
    text += fmt::format("{}: {} {}\n  chosen   {} ({}){}\n", row.site, row.op, row.shape,
                        row.kernel, name(row.origin),
                        row.batch_invariant ? "; a token's result depends on no neighbour" : "");
    for (const std::string& refused : row.refused) text += fmt::format("  refused  {}\n", refused);
    for (const PlannedRow* band : site.bands)
      text += fmt::format("  {:>5} tokens  {} a launch\n", band->n_tokens,
                          text_of(least(*band, 1, peak)));
  }
  return text;
}

Result<std::string> explanation_json(const Plan& plan, const std::string& op_or_site,
                                     const Peaks::Of& peak) {
  BASCULE_TRY_ASSIGN(const std::vector<SiteRows> sites, sites_of(plan, op_or_site));
  Json json = Json::array();
  for (const SiteRows& site : sites)
    for (const PlannedRow* band : site.bands) json.push_back(to_json(*band, peak));
  return json_text(json);
}

}  // namespace bascule
