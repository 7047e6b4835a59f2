#include "apps/served_engine.h"

#include <algorithm>

#include "apps/interrupt.h"
#include "apps/model_arguments.h"
#include "apps/plan_report.h"
#include "apps/progress_bar.h"
#include "apps/request_options.h"
#include "apps/terminal.h"
#include "apps/version.h"

namespace bascule {
namespace {

void tell(const std::vector<std::string>& notices) {
  for (const std::string& notice : notices) print_notice("note: {}\n", notice);
}

}  // namespace

Result<std::unique_ptr<ServedEngine>> ServedEngine::open(const std::string& model,
                                                         Options options) {
  std::unique_ptr<ServedEngine> served(new ServedEngine(std::move(options)));
  BASCULE_TRY(served->load(model));
  return served;
}

Status ServedEngine::load(const std::string& model) {
  BASCULE_TRY_ASSIGN(const std::filesystem::path folder, resolve_model(model));
  BASCULE_TRY_ASSIGN(model_, load_model(folder, config_overrides(options_)));
  tell(model_->notices);
  BASCULE_TRY(apply_model_defaults(model_->defaults, options_));
  BASCULE_TRY_ASSIGN(defaults_, request_spec(options_));
  BASCULE_TRY_ASSIGN(tokenizer_, Tokenizer::from_folder(folder).with_context(
                                     "clients send text, which needs a tokenizer"));
  glm_ = GlmPrompt::of(*tokenizer_);
  BASCULE_TRY_ASSIGN(EngineOptions engine, engine_options(options_, model_->config));
  engine.max_queued = options_.integer("max-queued");
  engine.n_valid_tokens = std::min<int64_t>(tokenizer_->vocab_size(), model_->config.vocab_size);
  ProgressBar bar("packing weights", true);
  BASCULE_TRY_ASSIGN(
      const std::vector<std::string> notices,
      pack_for(*model_, engine, options_, WeightUse::kValues, [&](int64_t done, int64_t all) {
        bar.show(done, all);
        return !Interrupt::requested();
      }));
  tell(notices);
  BASCULE_TRY_ASSIGN(setup_, plan_engine(*model_, engine));
  tell(setup_.memory.notices);
  describe_plan();
  BASCULE_TRY(load_weights());
  BASCULE_TRY_ASSIGN(engine_, make_engine(*model_, setup_));
  return {};
}

Status ServedEngine::load_weights() {
  ProgressBar bar("reading weights", true);
  return model_->read_ahead([&](int64_t done, int64_t all) {
    bar.show(done, all);
    return !Interrupt::requested();
  });
}

// Before the engine has threads: measuring the machine's peaks wants it idle.
void ServedEngine::describe_plan() {
  Threads threads({.count = setup_.options.n_threads, .scratch_bytes = 0});
  const Peaks::Of peak = peaks_of(setup_.machine, threads, peaks_file()).all;
  plan_text_ = bascule::plan_text(*model_, setup_, peak);
  plan_json_ = bascule::plan_json(*model_, setup_, peak);
}

ServedModel ServedEngine::served() const {
  const std::string folder = model_->checkpoint->folder().filename().string();
  return {.engine = engine_.get(),
          .tokenizer = tokenizer_.get(),
          .glm = glm_ ? &*glm_ : nullptr,
          .name = options_.has("served-model-name") ? options_.text("served-model-name") : folder,
          .plan_json = plan_json_,
          .version = BASCULE_VERSION,
          .defaults = defaults_,
          .created = unix_seconds()};
}

}  // namespace bascule
