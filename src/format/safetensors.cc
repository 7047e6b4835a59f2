#include "format/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/json.h"
#include "base/quote.h"

namespace bascule {
namespace {

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr size_t kMaxRank = 16;

// Elements and bytes of a shape; none where they pass 2^63.
Result<int64_t> bytes_of(Dtype dtype, const std::vector<int64_t>& shape) {
  int64_t bytes = size_bytes(dtype);
  const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  if (is_empty) return int64_t{0};
  for (const int64_t extent : shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      return data_loss(fmt::format("shape [{}] is past 2^63 bytes", fmt::join(shape, ", ")));
  return bytes;
}

Result<std::vector<int64_t>> int_list(const Json& value, std::string_view field, size_t max_size) {
  if (!value.is_array() || value.size() > max_size)
    return data_loss(fmt::format("{} is {}; a list of at most {} whole numbers is wanted", field,
                                 describe(value), max_size));
  std::vector<int64_t> list;
  for (const Json& item : value) {
    BASCULE_TRY_ASSIGN(const int64_t n, as_int(item, field));
    if (n < 0) return data_loss(fmt::format("{} has the negative number {}", field, n));
    list.push_back(n);
  }
  return list;
}

// One entry of the header; offsets count from `data_start`.
Result<SafetensorsEntry> parse_entry(const std::string& name, const Json& value, int64_t data_start,
                                     int64_t data_bytes) {
  if (!value.is_object())
    return data_loss(
        fmt::format("is {}; dtype, shape and data_offsets are wanted", describe(value)));
  for (const auto& [key, unused] : value.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      return data_loss("unknown key " + in_quotes(key));
  for (const char* key : {"dtype", "shape", "data_offsets"})
    if (find_field(value, key) == nullptr) return data_loss(fmt::format("{} is missing", key));

  SafetensorsEntry entry{.name = name};
  BASCULE_TRY_ASSIGN(const std::string type, as_string(value["dtype"], "dtype"));
  const auto dtype = dtype_from_name(type);
  if (!dtype) return unsupported("unknown element type " + in_quotes(type));
  entry.dtype = *dtype;
  BASCULE_TRY_ASSIGN(entry.shape, int_list(value["shape"], "shape", kMaxRank));
  BASCULE_TRY_ASSIGN(const auto offsets, int_list(value["data_offsets"], "data_offsets", 2));
  if (offsets.size() != 2) return data_loss("data_offsets is not a pair");
  const auto [begin, end] = std::pair(offsets[0], offsets[1]);
  if (begin > end || end > data_bytes)
    return data_loss(fmt::format("data_offsets [{}, {}] are not within the file's {} data bytes",
                                 begin, end, data_bytes));
  entry.offset = data_start + begin;
  entry.size_bytes = end - begin;

  BASCULE_TRY_ASSIGN(const int64_t wanted, bytes_of(entry.dtype, entry.shape));
  if (wanted != entry.size_bytes)
    return data_loss(fmt::format("{} [{}] takes {} bytes; data_offsets [{}, {}] give {}", type,
                                 fmt::join(entry.shape, ", "), wanted, begin, end,
                                 entry.size_bytes));
  if (entry.offset % size_bytes(entry.dtype) != 0)
    return unsupported(fmt::format(
        "misaligned: starts at byte {} of the file, which {} elements of {} bytes cannot. Load and "
        "save it once with the safetensors library, which aligns every tensor",
        entry.offset, type, size_bytes(entry.dtype)));
  return entry;
}

Result<std::map<std::string, std::string>> parse_metadata(const Json& value) {
  if (!value.is_object())
    return data_loss(fmt::format("is {}; an object is wanted", describe(value)));
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : value.items()) {
    BASCULE_TRY_ASSIGN(metadata[key], as_string(text, in_quotes(key)));
  }
  return metadata;
}

// No gap, no overlap, nothing after the last one. `entries` are in order of their offsets.
Status check_contiguous(const std::vector<SafetensorsEntry>& entries, int64_t data_start,
                        int64_t file_bytes) {
  int64_t end = data_start;
  const std::string* previous = nullptr;
  for (const SafetensorsEntry& e : entries) {
    const std::string after = previous == nullptr ? "the header" : "tensor " + in_quotes(*previous);
    if (e.offset != end)
      return data_loss(fmt::format("tensor {} begins at byte {}, but {} ends at byte {}: {}",
                                   in_quotes(e.name), e.offset, after, end,
                                   e.offset < end ? "they overlap"
                                                  : "bytes between them belong to "
                                                    "no tensor"));
    end += e.size_bytes;
    previous = &e.name;
  }
  if (end != file_bytes)
    return data_loss(
        fmt::format("the header describes {} bytes; the file has {} ({} bytes at its "
                    "end belong to no tensor)",
                    end, file_bytes, file_bytes - end));
  return {};
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The JSON header's text.
Result<std::string_view> header_text(std::span<const std::byte> file) {
  const auto file_bytes = static_cast<int64_t>(file.size());
  if (as_text(file).starts_with("version https://git-lfs"))
    return data_loss("a Git LFS pointer, not the file it stands for: run `git lfs pull` there");
  if (file_bytes < kLengthBytes)
    return data_loss(fmt::format("{} bytes: too short for a safetensors file", file_bytes));
  uint64_t length;
  memcpy(&length, file.data(), kLengthBytes);
  if (length > kMaxHeaderBytes)
    return data_loss(
        fmt::format("its first 8 bytes declare a header of {} bytes; at most {} are "
                    "legal: not a safetensors file",
                    length, kMaxHeaderBytes));
  if (static_cast<int64_t>(length) > file_bytes - kLengthBytes)
    return data_loss(
        fmt::format("truncated: a header of {} bytes is declared, and the whole file "
                    "has {}",
                    length, file_bytes));
  const std::string_view text = as_text(file.subspan(kLengthBytes, length));
  if (!text.starts_with('{')) return data_loss("its header does not begin with '{'");
  return text;
}

// The end of the last tensor as the header has it, whatever else is wrong with it: a truncated
// file should say so, and not that the first tensor past its end is at fault.
int64_t declared_data_bytes(const Json& header) {
  int64_t end = 0;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__" || !value.is_object()) continue;
    const Json* offsets = find_field(value, "data_offsets");
    if (offsets == nullptr || !offsets->is_array() || offsets->size() != 2) continue;
    if (const auto last = as_int((*offsets)[1], ""); last.ok()) end = std::max(end, *last);
  }
  return end;
}

Result<SafetensorsHeader> parse(std::span<const std::byte> file) {
  BASCULE_TRY_ASSIGN(const std::string_view text, header_text(file));
  BASCULE_TRY_ASSIGN(
      const Json json,
      parse_json(text, "header",
                 {.max_depth = 4, .max_bytes = kMaxHeaderBytes, .max_values = int64_t{1} << 23}));
  const auto file_bytes = static_cast<int64_t>(file.size());
  const int64_t data_start = kLengthBytes + static_cast<int64_t>(text.size());
  const int64_t data_bytes = file_bytes - data_start;
  if (const int64_t declared = declared_data_bytes(json); declared > data_bytes)
    return data_loss(
        fmt::format("truncated or misdeclared: its header describes {} data bytes; "
                    "the file has {} of them",
                    declared, data_bytes));

  SafetensorsHeader header;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      BASCULE_TRY_ASSIGN(header.metadata, parse_metadata(value).with_context("__metadata__"));
      continue;
    }
    BASCULE_TRY_ASSIGN(
        SafetensorsEntry entry,
        parse_entry(name, value, data_start, data_bytes).with_context("tensor " + in_quotes(name)));
    header.entries.push_back(std::move(entry));
  }
  // An empty tensor comes before the one that begins where it stands.
  std::stable_sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.offset, a.size_bytes) < std::pair(b.offset, b.size_bytes);
  });
  BASCULE_TRY(check_contiguous(header.entries, data_start, file_bytes));
  return header;
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file,
                                            const std::string& where) {
  return parse(file).with_context(where);
}

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  BASCULE_TRY_ASSIGN(MappedFile mapping, MappedFile::open(path));
  BASCULE_TRY_ASSIGN(SafetensorsHeader header, parse_safetensors(mapping.bytes(), path.string()));
  return SafetensorsFile{std::move(mapping), std::move(header)};
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  for (const SafetensorsEntry& e : header.entries)
    if (e.name == name) return &e;
  return nullptr;
}

Result<SafetensorsWriter> SafetensorsWriter::create(
    const std::filesystem::path& path, std::span<const TensorToWrite> declarations,
    const std::map<std::string, std::string>& metadata) {
  // Wide elements first: then each tensor begins at a multiple of its element's size.
  std::vector<size_t> order(declarations.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return size_bytes(declarations[a].dtype) > size_bytes(declarations[b].dtype);
  });

  std::vector<Place> places(declarations.size());
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t end = 0;
  auto& members = header.get_ref<Json::object_t&>();
  std::set<std::string_view> names;
  for (const size_t i : order) {
    const TensorToWrite& t = declarations[i];
    if (!names.insert(t.name).second)
      return invalid_argument(
          fmt::format("{}: a tensor named {} twice", path.string(), in_quotes(t.name)));
    BASCULE_TRY_ASSIGN(const int64_t bytes, bytes_of(t.dtype, t.shape));
    places[i] = {end, bytes, 0};
    members.emplace_back(
        t.name,
        Json{{"dtype", name(t.dtype)}, {"shape", t.shape}, {"data_offsets", {end, end + bytes}}});
    end += bytes;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception& e) {  // a name that is not UTF-8
    return invalid_argument(fmt::format("{}: header: {}", path.string(), e.what()));
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  for (Place& place : places) place.offset += kLengthBytes + static_cast<int64_t>(length);

  BASCULE_TRY_ASSIGN(AtomicFile file, AtomicFile::create(path));
  BASCULE_TRY(file.write_at(0, &length, kLengthBytes));
  BASCULE_TRY(file.write_at(kLengthBytes, text.data(), static_cast<int64_t>(length)));
  SafetensorsWriter writer(std::move(file));
  writer.places_ = std::move(places);
  return writer;
}

Status SafetensorsWriter::append(size_t index, const void* data, int64_t size_bytes) {
  Place& place = places_.at(index);
  BASCULE_CHECK_LE(place.written_bytes + size_bytes, place.size_bytes);
  BASCULE_TRY(file_.write_at(place.offset + place.written_bytes, data, size_bytes));
  place.written_bytes += size_bytes;
  return {};
}

Status SafetensorsWriter::finish() {
  for (const Place& place : places_) BASCULE_CHECK_EQ(place.written_bytes, place.size_bytes);
  return file_.commit();
}

Status write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                         const std::map<std::string, std::string>& metadata) {
  BASCULE_TRY_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::create(path, tensors, metadata));
  for (size_t i = 0; i < tensors.size(); ++i) {
    BASCULE_TRY_ASSIGN(const int64_t bytes, bytes_of(tensors[i].dtype, tensors[i].shape));
    BASCULE_TRY(writer.append(i, tensors[i].data, bytes));
  }
  return writer.finish();
}

}  // namespace bascule
