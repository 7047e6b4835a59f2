// The safetensors format (github.com/huggingface/safetensors): 8 bytes of header length, a JSON
// header of names, types, shapes and offsets, then the tensors' bytes without a gap. Read strictly:
// one check for every path, so that a file is either understood to its last byte or refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"
#include "base/mapped_file.h"
#include "base/status.h"
#include "tensor/dtype.h"

namespace bascule {

struct SafetensorsEntry {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  int64_t offset = 0;  // from the start of the file; a multiple of the element's size
  int64_t size_bytes = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry>
      entries;  // in order of their bytes; together they are the whole file
  std::map<std::string, std::string> metadata;
};

// `file` is the whole file; `where` names it in errors. Reads the header alone.
Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file,
                                            const std::string& where);

// A file, mapped and understood.
struct SafetensorsFile {
  MappedFile mapping;
  SafetensorsHeader header;

  static Result<SafetensorsFile> open(const std::filesystem::path& path);
  const SafetensorsEntry* find(std::string_view name) const;  // null where there is none; linear
  const void* data(const SafetensorsEntry& entry) const {
    return mapping.bytes().data() + entry.offset;
  }
};

struct TensorToWrite {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  const void* data = nullptr;  // packed
};

// Writes the file whole or not at all, whatever it held before; a full disk is an error.
Status write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                         const std::map<std::string, std::string>& metadata = {});

// The same in pieces, for files that do not fit in memory: declare all, write each, finish.
class SafetensorsWriter {
 public:
  // `data` of the declarations is not looked at.
  static Result<SafetensorsWriter> create(const std::filesystem::path& path,
                                          std::span<const TensorToWrite> declarations,
                                          const std::map<std::string, std::string>& metadata = {});

  // The next `size_bytes` bytes of declaration `index`; tensors may be written in any order.
  Status append(size_t index, const void* data, int64_t size_bytes);
  Status finish();  // every tensor must be complete

 private:
  struct Place {
    int64_t offset = 0, size_bytes = 0, written_bytes = 0;
  };
  explicit SafetensorsWriter(AtomicFile file) : file_(std::move(file)) {}
  AtomicFile file_;
  std::vector<Place> places_;
};

}  // namespace bascule
