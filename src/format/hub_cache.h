// MODEL as people write it, to a folder on this machine.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/status.h"

namespace bascule {

// A folder, or a Hub id ("zai-org/GLM-5.2", with "@revision" if wanted) found complete in the local
// Hub cache. Nothing is downloaded: the error says the command that would.
Result<std::filesystem::path> find_model_folder(std::string_view model);

// The same with the cache given.
Result<std::filesystem::path> find_model_folder(std::string_view model,
                                                const std::filesystem::path& hub_cache);

// Where the Hub's tools keep their cache: $HF_HUB_CACHE, else $HF_HOME/hub, else
// $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub. These names are theirs, not
// options of ours.
std::filesystem::path hub_cache_folder();

}  // namespace bascule
