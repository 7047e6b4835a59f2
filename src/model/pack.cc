#include "model/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/digest.h"
#include "base/threads.h"
#include "device/host_memory.h"
#include "tensor/quant/mxfp4.h"
#include "tensor/quant/mxfp4_tiles.h"

namespace bascule {
namespace fs = std::filesystem;
namespace {

// A weight that will be in tiles.
struct Tiled {
  std::string name;
  WeightMatrix* view;
  PackedTensor codes, scales;

  explicit Tiled(const NamedWeight& w)
      : name(w.name),
        view(&w.weight->w),
        codes{w.name + ".tiles", tiles_of(view->n_out), mxfp4_groups(view->n_in) * kTileBlockBytes},
        scales{w.name + ".tile_scales", codes.n_rows, mxfp4_groups(view->n_in) * kTileRows} {}

  void use(const void* code_bytes, const void* scale_bytes) const {
    *view = WeightMatrix::packed(WeightFormat::kMxfp4Tiles, code_bytes, scale_bytes, view->n_out,
                                 view->n_in);
  }
  int64_t size_bytes() const { return codes.size_bytes() + scales.size_bytes(); }

  // Into room for both, by all threads.
  void fill(std::byte* code_bytes, std::byte* scale_bytes, Threads& threads) const {
    const WeightMatrix& w = *view;
    const View<const uint8_t, 2> from{
        static_cast<const uint8_t*>(w.codes), {w.n_out, mxfp4_bytes(w.n_in)}, {w.row_stride, 1}};
    const View<const uint8_t, 2> from_scales{static_cast<const uint8_t*>(w.scales),
                                             {w.n_out, mxfp4_groups(w.n_in)},
                                             {w.scale_stride, 1}};
    const auto to = View<uint8_t, 2>::packed(reinterpret_cast<uint8_t*>(code_bytes),
                                             {codes.n_rows, codes.row_bytes});
    const auto to_scales = View<uint8_t, 2>::packed(reinterpret_cast<uint8_t*>(scale_bytes),
                                                    {scales.n_rows, scales.row_bytes});
    threads.ranges(codes.n_rows, 4, [&](int64_t begin, int64_t end, int) {
      tile_mxfp4(from, from_scales, w.n_in, begin, end, to, to_scales);
    });
  }
};

bool is_mxfp4(const Weight& weight) { return weight.w.format == WeightFormat::kMxfp4; }
bool is_mxfp4(const MlpWeights& mlp) {
  return is_mxfp4(mlp.gate) && is_mxfp4(mlp.up) && is_mxfp4(mlp.down);
}

// Attention reads kv_b by rows of heads, and the router and the indexer's weights read inputs that
// are never rounded. An op over experts has them all in one layout.
void add_packable(LayerWeights& layer, std::set<const Weight*>& out) {
  AttentionWeights& a = layer.attention;
  for (Weight* w : {&a.q_a, &a.q_b, &a.kv_a, &a.o, &layer.indexer.wq_b, &layer.indexer.wk})
    if (is_mxfp4(*w)) out.insert(w);
  const auto add = [&](MlpWeights& mlp) { out.insert({&mlp.gate, &mlp.up, &mlp.down}); };
  if (!layer.is_sparse && is_mxfp4(layer.dense)) add(layer.dense);
  const bool all = std::ranges::all_of(layer.experts, [](const auto& e) { return is_mxfp4(e); });
  if (layer.is_sparse && all) {
    for (MlpWeights& expert : layer.experts) add(expert);
    if (is_mxfp4(layer.shared)) add(layer.shared);
  }
}

std::vector<Tiled> packable(const ModelConfig& config, ModelWeights& weights) {
  std::set<const Weight*> wanted;
  for (LayerWeights& layer : weights.layers) add_packable(layer, wanted);
  if (weights.has_draft) add_packable(weights.draft.layer, wanted);
  std::vector<Tiled> tiled;
  for (const NamedWeight& w : named_weights(config, weights))
    if (wanted.contains(w.weight)) tiled.emplace_back(w);
  return tiled;
}

int64_t bytes_of(const std::vector<Tiled>& tiled) {
  int64_t bytes = 0;
  for (const Tiled& t : tiled) bytes += t.size_bytes();
  return bytes;
}

Status write_file(const fs::path& path, const std::string& fingerprint,
                  const std::vector<Tiled>& tiled, Threads& threads, const PackProgress& progress) {
  std::vector<PackedTensor> tensors;
  for (const Tiled& t : tiled) tensors.push_back(t.codes);
  for (const Tiled& t : tiled) tensors.push_back(t.scales);
  BASCULE_TRY_ASSIGN(PackedWriter writer, PackedWriter::create(path, fingerprint, tensors));
  const int64_t all = bytes_of(tiled);
  int64_t done = 0;
  std::vector<std::byte> codes, scales;
  for (size_t i = 0; i < tiled.size(); ++i) {
    codes.resize(size_t(tiled[i].codes.size_bytes()));
    scales.resize(size_t(tiled[i].scales.size_bytes()));
    tiled[i].fill(codes.data(), scales.data(), threads);
    BASCULE_TRY(writer.write(i, codes.data()));
    BASCULE_TRY(writer.write(tiled.size() + i, scales.data()));
    done += tiled[i].size_bytes();
    if (!progress(done, all)) return cancelled("packing weights was stopped");
  }
  return writer.finish();
}

// Views into a file; false where it lacks one.
bool use_file(const PackedFile& file, const std::vector<Tiled>& tiled) {
  for (const Tiled& t : tiled)
    if (file.find(t.codes) == nullptr || file.find(t.scales) == nullptr) return false;
  for (const Tiled& t : tiled) t.use(file.find(t.codes), file.find(t.scales));
  return true;
}

class Packer {
 public:
  Packer(LoadedModel& model, const PackOptions& options, const PackProgress& progress)
      : model_(model),
        options_(options),
        progress_(progress),
        tiled_(packable(model.config, model.weights)),
        threads_({.count = int(usable_cpus().size()), .scratch_bytes = 0, .cpus = {}}) {}

  Result<std::vector<std::string>> run() {
    if (tiled_.empty()) return notices_;
    if (options_.shapes_only) {
      for (const Tiled& t : tiled_) t.use(nullptr, nullptr);
      return notices_;
    }
    for (const Tiled& t : tiled_) source_bytes_ += t.view->size_bytes();
    for (const Tiled& t : tiled_) model_.packed_sources.insert(t.name);
    fingerprint_ = packed_fingerprint(*model_.checkpoint);
    BASCULE_TRY_ASSIGN(const bool beside, open(model_.checkpoint->folder() / kPackedFileName));
    if (beside) return notices_;
    if (!options_.cache.empty()) {
      const fs::path path = cached();
      BASCULE_TRY_ASSIGN(const bool was_there, open(path));
      if (was_there) return notices_;
      BASCULE_TRY_ASSIGN(const bool is_made, make(path));
      if (is_made) return notices_;
    }
    BASCULE_TRY(pack_in_memory());
    return notices_;
  }

 private:
  // The folder's name for a person, and a digest of its whole path.
  fs::path cached() const {
    std::error_code error;
    const fs::path folder = fs::weakly_canonical(model_.checkpoint->folder(), error);
    return options_.cache / fmt::format("{}-{}.packed", folder.filename().string(),
                                        digest_of(folder.string()).hex().substr(0, 16));
  }

  // Uses a file if it is there and right; says why if it is there and is not.
  Result<bool> open(const fs::path& path) {
    Result<PackedFile> file = PackedFile::open(path, fingerprint_, progress_);
    if (!file.ok()) {
      if (file.status().code() == Code::kCancelled) return file.status();
      if (file.status().code() != Code::kNotFound)
        notices_.push_back(fmt::format("packed weights are not used: {}", file.status().message()));
      return false;
    }
    if (!use_file(*file, tiled_)) {
      notices_.push_back(
          fmt::format("packed weights are not used: {}: tensors are missing", path.string()));
      return false;
    }
    model_.packed_file = std::make_unique<PackedFile>(std::move(file).value());
    model_.weight_bytes += model_.packed_file->size_bytes() - source_bytes_;
    return true;
  }

  Result<bool> make(const fs::path& path) {
    const Status written = write_file(path, fingerprint_, tiled_, threads_, progress_);
    if (!written.ok()) {
      if (written.code() == Code::kCancelled) return written;
      notices_.push_back(
          fmt::format("packed weights cannot be kept ({}): they are packed in memory "
                      "at each start; --pack-cache names another folder",
                      written.message()));
      return false;
    }
    notices_.push_back(fmt::format("packed weights are kept in {}: {} bytes, for faster starts",
                                   path.string(), bytes_of(tiled_)));
    return open(path);
  }

  Status pack_in_memory() {
    const int64_t bytes = bytes_of(tiled_), available = HostMemory::detect().available_bytes;
    if (bytes > available)
      return resource_exhausted(
          fmt::format("packing takes {} bytes of memory, and {} are available; with a folder for "
                      "--pack-cache none is taken, and --activations bf16 needs no packing",
                      bytes, available));
    BASCULE_TRY_ASSIGN(model_.packed_memory, Buffer::reserve(bytes, "packed weights"));
    std::byte* to = model_.packed_memory.data();
    int64_t done = 0;
    for (const Tiled& t : tiled_) {
      std::byte* scales = to + t.codes.size_bytes();
      t.fill(to, scales, threads_);
      t.use(to, scales);
      to = scales + t.scales.size_bytes();
      done += t.size_bytes();
      if (!progress_(done, bytes)) return cancelled("packing weights was stopped");
    }
    return {};
  }

  LoadedModel& model_;
  const PackOptions& options_;
  const PackProgress& progress_;
  const std::vector<Tiled> tiled_;
  Threads threads_;
  std::string fingerprint_;
  int64_t source_bytes_ = 0;
  std::vector<std::string> notices_;
};

}  // namespace

fs::path default_pack_cache() {
  const auto folder = [](const char* variable) -> fs::path {
    const char* value = std::getenv(variable);
    return value != nullptr && value[0] == '/' ? value : "";
  };
  if (const fs::path cache = folder("XDG_CACHE_HOME"); !cache.empty())
    return cache / "bascule/packed";
  if (const fs::path home = folder("HOME"); !home.empty()) return home / ".cache/bascule/packed";
  return {};
}

Result<std::vector<std::string>> pack_weights(LoadedModel& model, const PackOptions& options,
                                              const PackProgress& progress) {
  return Packer(model, options, progress).run();
}

Result<int64_t> write_packed(const fs::path& folder, const PackProgress& progress) {
  BASCULE_TRY_ASSIGN(const std::unique_ptr<LoadedModel> model, load_model(folder));
  const std::vector<Tiled> tiled = packable(model->config, model->weights);
  if (tiled.empty()) return 0;
  Threads threads({.count = int(usable_cpus().size()), .scratch_bytes = 0, .cpus = {}});
  BASCULE_TRY(write_file(folder / kPackedFileName, packed_fingerprint(*model->checkpoint), tiled,
                         threads, progress));
  return bytes_of(tiled);
}

}  // namespace bascule
