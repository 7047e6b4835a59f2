// `bascule plan`: what would run here, for each op and band, and in how many bytes. Loads no
// weights.
#include "apps/commands.h"
#include "apps/model_arguments.h"
#include "apps/plan_report.h"
#include "apps/terminal.h"

namespace bascule {

Result<int> cmd_plan(const CommandLine& line) {
  BASCULE_TRY_ASSIGN(const std::filesystem::path folder, only_model(line));
  BASCULE_TRY_ASSIGN(const std::unique_ptr<LoadedModel> model,
                     load_model(folder, config_overrides(line.options), WeightUse::kShapes));
  BASCULE_TRY_ASSIGN(const EngineOptions options, engine_options(line.options, model->config));
  BASCULE_TRY(pack_for(*model, options, line.options, WeightUse::kShapes,
                       [](int64_t, int64_t) { return true; }));
  BASCULE_TRY_ASSIGN(const EngineSetup setup, plan_engine(*model, options));
  Threads threads({.count = setup.options.n_threads, .scratch_bytes = 0});
  const Peaks::Of peak = peaks_of(setup.machine, threads, peaks_file()).all;
  const bool as_json = line.options.flag("json");
  if (line.options.has("explain")) {
    const std::string what = line.options.text("explain");
    BASCULE_TRY_ASSIGN(const std::string text, as_json
                                                   ? explanation_json(setup.plans[0], what, peak)
                                                   : explanation_text(setup.plans[0], what, peak));
    write_output(text);
  } else {
    write_output(as_json ? plan_json(*model, setup, peak) : plan_text(*model, setup, peak));
  }
  return 0;
}

}  // namespace bascule
