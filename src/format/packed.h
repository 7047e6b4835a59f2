// Weights in the order that kernels read them, in a file of our own beside or instead of the
// checkpoint's: a safetensors file of bytes, with the fingerprint of what it was made from, and a
// digest of each tensor at its end. It is mapped, so a second start reads it at the disk's speed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "format/checkpoint.h"
#include "format/safetensors.h"

namespace bascule {

// Changes when the order of any layout does; files of another version are made again.
inline constexpr int kPackedVersion = 1;

// Of a checkpoint's files: names, sizes, times of change, headers, and some of the bytes of each;
// and of kPackedVersion. Two checkpoints with the same one are taken for the same.
std::string packed_fingerprint(const Checkpoint& checkpoint);

struct PackedTensor {
  std::string name;
  int64_t n_rows = 0, row_bytes = 0;

  int64_t size_bytes() const { return n_rows * row_bytes; }
};

// (bytes done, bytes in all); false stops with kCancelled.
using PackProgress = std::function<bool(int64_t, int64_t)>;

class PackedFile {
 public:
  // Opens and reads it whole, comparing every digest. kNotFound where there is none; kUnavailable
  // where it was made from other files or by another version; kDataLoss where its bytes are not
  // what was written.
  static Result<PackedFile> open(const std::filesystem::path& path, const std::string& fingerprint,
                                 const PackProgress& progress);

  // Null where it has no such tensor of this shape.
  const void* find(const PackedTensor& tensor) const;
  int64_t size_bytes() const { return int64_t(file_.mapping.bytes().size()); }

 private:
  explicit PackedFile(SafetensorsFile file) : file_(std::move(file)) {}
  SafetensorsFile file_;
};

class PackedWriter {
 public:
  static Result<PackedWriter> create(const std::filesystem::path& path,
                                     const std::string& fingerprint,
                                     std::span<const PackedTensor> tensors);
  // The whole of tensor `index`.
  Status write(size_t index, const void* data);
  Status finish();

 private:
  PackedWriter(SafetensorsWriter writer, std::vector<PackedTensor> tensors);
  SafetensorsWriter writer_;
  std::vector<PackedTensor> tensors_;
  std::vector<uint64_t> digests_;  // [tensors][2]
};

}  // namespace bascule
