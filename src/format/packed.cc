#include "format/packed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/digest.h"
#include "base/quote.h"

namespace bascule {
namespace fs = std::filesystem;
namespace {

constexpr const char* kDigests = "digests";
constexpr int64_t kDigestBytes = 16;
constexpr const char* kFingerprintKey = "bascule_packed";

// Bytes at the start, in the middle and at the end of a file.
void add_samples(std::span<const std::byte> bytes, Digest& digest) {
  constexpr size_t kSample = 64 << 10;
  const size_t n = std::min(kSample, bytes.size());
  for (const size_t at : {size_t{0}, (bytes.size() - n) / 2, bytes.size() - n})
    digest.add(bytes.data() + at, int64_t(n));
}

std::vector<TensorToWrite> declarations_of(std::span<const PackedTensor> tensors) {
  std::vector<TensorToWrite> declarations;
  for (const PackedTensor& t : tensors)
    declarations.push_back({t.name, Dtype::kU8, {t.n_rows, t.row_bytes}, nullptr});
  declarations.push_back({kDigests, Dtype::kU8, {int64_t(tensors.size()), kDigestBytes}, nullptr});
  return declarations;
}

}  // namespace

std::string packed_fingerprint(const Checkpoint& checkpoint) {
  Digest digest;
  for (const fs::path& path : checkpoint.files()) {
    std::error_code error;
    const std::string name = path.filename().string();
    const auto time = fs::last_write_time(path, error).time_since_epoch().count();
    digest.add(name.data(), int64_t(name.size()) + 1);
    digest.add(&time, sizeof(time));
    if (const auto file = MappedFile::open(path); file.ok()) {
      const uint64_t size = file->bytes().size();
      digest.add(&size, sizeof(size));
      add_samples(file->bytes(), digest);
    }
  }
  for (const auto& [name, t] : checkpoint.tensors()) {
    digest.add(name.data(), int64_t(name.size()) + 1);
    digest.add(&t.size_bytes, sizeof(t.size_bytes));
  }
  return fmt::format("v{}-{}", kPackedVersion, digest.value().hex());
}

Result<PackedFile> PackedFile::open(const fs::path& path, const std::string& fingerprint,
                                    const PackProgress& progress) {
  std::error_code error;
  if (!fs::exists(path, error)) return not_found(path.string() + ": there is none");
  BASCULE_TRY_ASSIGN(SafetensorsFile file, SafetensorsFile::open(path));
  const auto& metadata = file.header.metadata;
  const auto found = metadata.find(kFingerprintKey);
  if (found == metadata.end()) return data_loss(path.string() + ": not a file of packed weights");
  if (found->second != fingerprint)
    return unavailable(
        fmt::format("{}: made from other files, or by another version", path.string()));
  const SafetensorsEntry* digests = file.find(kDigests);
  if (digests == nullptr ||
      digests->size_bytes != kDigestBytes * (int64_t(file.header.entries.size()) - 1))
    return data_loss(path.string() + ": its digests are missing");
  const auto* stored = static_cast<const uint8_t*>(file.data(*digests));
  int64_t done = 0, index = 0;
  for (const SafetensorsEntry& entry : file.header.entries) {
    if (entry.name == kDigests) continue;
    Digest digest;
    digest.add(file.data(entry), entry.size_bytes);
    const DigestValue value = digest.value();
    uint64_t want[2];
    std::memcpy(want, stored + kDigestBytes * index++, sizeof(want));
    if (value.high != want[0] || value.low != want[1])
      return data_loss(fmt::format("{}: tensor {} is not what was written: the file is damaged",
                                   path.string(), in_quotes(entry.name)));
    done += entry.size_bytes;
    if (!progress(done, int64_t(file.mapping.bytes().size())))
      return cancelled("reading packed weights was stopped");
  }
  return PackedFile(std::move(file));
}

const void* PackedFile::find(const PackedTensor& tensor) const {
  const SafetensorsEntry* entry = file_.find(tensor.name);
  const std::vector<int64_t> shape = {tensor.n_rows, tensor.row_bytes};
  return entry != nullptr && entry->dtype == Dtype::kU8 && entry->shape == shape
             ? file_.data(*entry)
             : nullptr;
}

PackedWriter::PackedWriter(SafetensorsWriter writer, std::vector<PackedTensor> tensors)
    : writer_(std::move(writer)), tensors_(std::move(tensors)), digests_(2 * tensors_.size()) {}

Result<PackedWriter> PackedWriter::create(const fs::path& path, const std::string& fingerprint,
                                          std::span<const PackedTensor> tensors) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error)
    return unavailable(
        fmt::format("{}: cannot be made: {}", path.parent_path().string(), error.message()));
  BASCULE_TRY_ASSIGN(
      SafetensorsWriter writer,
      SafetensorsWriter::create(path, declarations_of(tensors), {{kFingerprintKey, fingerprint}}));
  return PackedWriter(std::move(writer), {tensors.begin(), tensors.end()});
}

Status PackedWriter::write(size_t index, const void* data) {
  const int64_t n_bytes = tensors_[index].size_bytes();
  const DigestValue value = digest_of({static_cast<const char*>(data), size_t(n_bytes)});
  digests_[2 * index] = value.high;
  digests_[2 * index + 1] = value.low;
  return writer_.append(index, data, n_bytes);
}

Status PackedWriter::finish() {
  BASCULE_TRY(writer_.append(tensors_.size(), digests_.data(),
                             int64_t(digests_.size() * sizeof(uint64_t))));
  return writer_.finish();
}

}  // namespace bascule
