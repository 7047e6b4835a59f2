// `bascule plan`: what would run here, for each op and band, and in how many bytes. Loads no
// weights.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <map>

#include "apps/commands.h"
#include "apps/model_arguments.h"

namespace bascule {
namespace {

using Json = nlohmann::ordered_json;

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

std::string amount(double value, const char* unit) {
  const std::pair<double, const char*> prefixes[] = {
      {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [size, prefix] : prefixes)
    if (value >= size) return fmt::format("{:.3g} {}{}", value / size, prefix, unit);
  return fmt::format("{:.3g} {}", value, unit);
}

Cost step_cost(const Plan& plan, int band) {
  Cost total;
  for (const PlannedRow& row : plan.rows()) {
    if (row.band != band) continue;
    total.bytes += row.launches * row.cost.bytes;
    total.flops += row.launches * row.cost.flops;
  }
  return total;
}

std::string_view mode_name(KernelMode mode) {
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

std::string isa_names(const Machine& machine) {
  std::string names;
  for (const Isa isa : machine.isas)
    names += fmt::format("{}{}", names.empty() ? "" : " ", name(isa));
  return names;
}

void print_text(const LoadedModel& model, const EngineSetup& setup) {
  const EngineOptions& o = setup.options;
  fmt::print("model     {} ({})\n", model.checkpoint->folder().string(), model.config.model_type);
  fmt::print("machine   {}; {} threads; {}\n", setup.machine.processor, o.n_threads,
             isa_names(setup.machine));
  fmt::print("layout    tp {}, ep {}, dp {}: {} ranks\n", o.layout.tp, o.layout.ep, o.layout.dp,
             o.layout.world());
  fmt::print("types     activations {}, cache {}; kernels {}\n\n", name(*o.activations),
             name(*o.kv_dtype), mode_name(o.kernels));
  fmt::print("{}\n", setup.memory.text());
  for (const std::string& notice : setup.memory.notices) fmt::print("note: {}\n", notice);

  const Plan& plan = setup.plans[0];
  const int last = plan.n_bands() - 1;
  fmt::print(
      "\nops of one step on rank 0; bytes and operations are of all launches, at 1 and at {} "
      "tokens\n\n",
      plan.policy().max_batch_tokens);
  fmt::print("{:<32} {:>5}  {:<30} {:<10} {:>9} {:>11}  {:>9} {:>11}  {}\n", "site", "times",
             "kernel", "origin", "bytes", "ops", "bytes", "ops", "shape");
  for (const SiteRows& site : by_site(plan)) {
    const PlannedRow& a = site.first();
    const PlannedRow& b = *site.bands.back();
    fmt::print("{:<32} {:>5}  {:<30} {:<10} {:>9} {:>11}  {:>9} {:>11}  {}\n", a.site, a.launches,
               a.kernel, name(a.origin), amount(a.launches * a.cost.bytes, "B"),
               amount(a.launches * a.cost.flops, "FLOP"), amount(b.launches * b.cost.bytes, "B"),
               amount(b.launches * b.cost.flops, "FLOP"), a.shape);
  }
  for (const int band : {0, last})
    fmt::print(
        "\nwhole step at {:>4} tokens: {}, {}",
        kBandEnds[band] == INT64_MAX ? plan.policy().max_batch_tokens
                                     : std::min(kBandEnds[band], plan.policy().max_batch_tokens),
        amount(step_cost(plan, band).bytes, "B"), amount(step_cost(plan, band).flops, "FLOP"));
  fmt::print("\n");
}

Status explain(const Plan& plan, const std::string& what) {
  std::map<std::string, bool> known;
  bool found = false;
  for (const SiteRows& site : by_site(plan)) {
    const PlannedRow& row = site.first();
    known[row.op] = known[row.site] = true;
    if (row.op != what && row.site != what) continue;
    found = true;
    fmt::print("{}: {} {}\n", row.site, row.op, row.shape);
    fmt::print("  chosen   {} ({}){}\n", row.kernel, name(row.origin),
               row.batch_invariant ? "; a token's result does not depend on its neighbours" : "");
    for (const std::string& refused : row.refused) fmt::print("  refused  {}\n", refused);
    for (const PlannedRow* band : site.bands)
      fmt::print("  {:>5} tokens  {:>10} {:>12} a launch\n", band->n_tokens,
                 amount(band->cost.bytes, "B"), amount(band->cost.flops, "FLOP"));
  }
  if (found) return {};
  std::vector<std::string> names;
  for (const auto& [name, unused] : known) names.push_back(name);
  return not_found(fmt::format("--explain {}: the plan has {}", what, fmt::join(names, ", ")));
}

Json to_json(const LoadedModel& model, const EngineSetup& setup) {
  const EngineOptions& o = setup.options;
  Json json = {{"model", model.checkpoint->folder().string()},
               {"model_type", model.config.model_type},
               {"processor", setup.machine.processor},
               {"instruction_sets", Json::array()},
               {"threads", o.n_threads},
               {"layout", {{"tp", o.layout.tp}, {"ep", o.layout.ep}, {"dp", o.layout.dp}}},
               {"activations", name(*o.activations)},
               {"kv_cache_dtype", name(*o.kv_dtype)},
               {"kernels", mode_name(o.kernels)}};
  for (const Isa isa : setup.machine.isas) json["instruction_sets"].push_back(name(isa));

  const MemoryPlan& m = setup.memory;
  json["memory"] = {{"available_bytes", m.available_bytes}, {"total_bytes", m.total_bytes()},
                    {"max_model_len", m.max_context},       {"kv_pages", m.n_pages},
                    {"kv_token_bytes", m.kv_token_bytes},   {"pools", Json::array()},
                    {"activations", Json::array()}};
  for (const MemoryPool& pool : m.pools)
    json["memory"]["pools"].push_back(
        {{"name", pool.name}, {"formula", pool.formula}, {"bytes", pool.bytes}});
  for (const Arena::Entry& entry : m.activations)
    json["memory"]["activations"].push_back({{"name", entry.name}, {"bytes", entry.size_bytes}});

  json["ops"] = Json::array();
  for (const PlannedRow& row : setup.plans[0].rows())
    json["ops"].push_back({{"site", row.site},
                           {"op", row.op},
                           {"shape", row.shape},
                           {"band_tokens", row.n_tokens},
                           {"launches", row.launches},
                           {"kernel", row.kernel},
                           {"origin", name(row.origin)},
                           {"batch_invariant", row.batch_invariant},
                           {"refused", row.refused},
                           {"bytes", row.cost.bytes},
                           {"flops", row.cost.flops}});
  return json;
}

}  // namespace

Result<int> cmd_plan(const CommandLine& line) {
  BASCULE_TRY_ASSIGN(const std::filesystem::path folder, only_model(line));
  BASCULE_TRY_ASSIGN(const std::unique_ptr<LoadedModel> model,
                     load_model(folder, config_overrides(line.options), WeightUse::kShapes));
  BASCULE_TRY_ASSIGN(const EngineSetup setup, plan_engine(*model, engine_options(line.options)));
  if (line.options.has("explain")) {
    BASCULE_TRY(explain(setup.plans[0], line.options.text("explain")));
  } else if (line.options.flag("json")) {
    fmt::print("{}\n", to_json(*model, setup).dump(2));
  } else {
    print_text(*model, setup);
  }
  return 0;
}

}  // namespace bascule
