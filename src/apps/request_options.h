// From options to what the engine is asked, for `run`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/options.h"
#include "engine/request.h"

namespace bascule {

// The words after `run`: MODEL and PROMPT, either of which may be absent. The first is MODEL if
// looks_like_model() says so, and the prompt otherwise.
struct RunWords {
  std::string model;
  std::optional<std::string> prompt;
};
Result<RunWords> split_words(const std::vector<std::string>& words);

// --prompt-ids: "5,6,7", or "@FILE" that holds such a list.
Result<std::vector<int32_t>> prompt_ids(const std::string& text);

// --logit-bias: "5:-100,17:2.5".
Result<std::vector<std::pair<int32_t, float>>> parse_logit_bias(std::string_view text);

// All but the prompt.
Result<RequestSpec> request_spec(const Options& options);

}  // namespace bascule
