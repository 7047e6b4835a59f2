// Weights put in the order that kernels read: MXFP4 linears in tiles (tensor/quant/mxfp4_tiles.h),
// for products with int8 inputs. Everything else is read as files have it, at full speed.
//
// A packed file is looked for beside the weights (`bascule quantize --pack` writes it there), then
// in the cache's folder, where it is made on the first load. One that was made from other files, or
// is damaged, is never used: it is said so, and made again. Where none can be kept, weights are
// packed in memory at each start.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "format/packed.h"
#include "model/load.h"

namespace bascule {

inline constexpr const char* kPackedFileName = "bascule.packed";  // beside the weights

struct PackOptions {
  std::filesystem::path cache;  // folder; empty: nothing is kept
  bool shapes_only = false;     // for a plan: the layout without its bytes
};

// $XDG_CACHE_HOME/bascule/packed or ~/.cache/bascule/packed; empty where neither is known.
std::filesystem::path default_pack_cache();

// Replaces views of `model.weights`. Returns what a person should know. Fails only when stopped, or
// when memory for packing does not suffice.
Result<std::vector<std::string>> pack_weights(LoadedModel& model, const PackOptions& options,
                                              const PackProgress& progress);

// Writes the packed file of a checkpoint beside its weights; what it holds, in bytes. 0 and no file
// where the checkpoint has nothing to pack.
Result<int64_t> write_packed(const std::filesystem::path& folder, const PackProgress& progress);

}  // namespace bascule
