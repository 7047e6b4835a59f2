#include "apps/commands.h"
#include "apps/interrupt.h"
#include "apps/model_arguments.h"
#include "apps/progress_bar.h"
#include "apps/terminal.h"
#include "model/inspect.h"

namespace bascule {

Result<int> cmd_inspect(const CommandLine& line) {
  const Interrupt interrupt;
  const ConfigOverrides overrides = config_overrides(line.options);
  BASCULE_TRY_ASSIGN(const std::filesystem::path folder, only_model(line));
  Result<Inspection> inspection = [&] {
    ProgressBar bar("reading weights", true);
    return inspect(folder,
                   {.check_values = line.options.flag("check"),
                    .latent_norm_eps = overrides.latent_norm_eps,
                    .index_norm_eps = overrides.index_norm_eps},
                   [&](int64_t done, int64_t all) {
                     bar.show(done, all);
                     return !Interrupt::requested();
                   });
  }();
  BASCULE_TRY(inspection);
  write_output(line.options.flag("json") ? inspection_json(*inspection)
                                         : inspection_text(*inspection));
  return inspection->is_sound() ? 0 : 1;
}

}  // namespace bascule
