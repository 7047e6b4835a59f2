#include "text/tokenizer.h"

#include <bascule_text.h>
#include <fmt/format.h>

#include <limits>

#include "base/mapped_file.h"
#include "text/incremental_decoder.h"

namespace bascule {
namespace {

// The message that a failed call of the library left, which is given back.
std::string take_message(char* error) {
  std::string message = error ? error : "unknown error";
  bascule_text_error_free(error);
  return message;
}

Joining joining_of(int join) {
  switch (join) {
    case BASCULE_TEXT_JOIN_BYTES:
      return Joining::kBytes;
    case BASCULE_TEXT_JOIN_RUNS:
      return Joining::kRuns;
    case BASCULE_TEXT_JOIN_SPACED:
      return Joining::kSpaced;
  }
  check_failed(__FILE__, __LINE__, "bascule_text.h names every way to join", std::to_string(join));
}

}  // namespace

Tokenizer::Tokenizer(bascule_text_tokenizer* handle) : handle_(handle) {
  const bascule_text_decoding decoding = bascule_text_get_decoding(handle_);
  decoding_ = {joining_of(decoding.join), decoding.leading_spaces};
  BASCULE_CHECK_LE(decoding.id_end, uint32_t{std::numeric_limits<int32_t>::max()});
  vocab_size_ = static_cast<int32_t>(decoding.id_end);
  size_t n_added = 0;
  const uint32_t* added = bascule_text_get_added(handle_, &n_added);
  for (const uint32_t id : std::span(added, n_added)) {
    added_.push_back(*token_of(static_cast<int32_t>(id)));
  }
}

Tokenizer::~Tokenizer() { bascule_text_tokenizer_free(handle_); }

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_folder(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "tokenizer.json";
  BASCULE_TRY_ASSIGN(const MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  return from_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()})
      .with_context(path.string());
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_json(std::string_view json) {
  if (json.size() > kMaxFileBytes) {
    return out_of_range(
        fmt::format("a tokenizer of {} bytes; at most {} are taken", json.size(), kMaxFileBytes));
  }
  char* error = nullptr;
  bascule_text_tokenizer* handle = bascule_text_tokenizer_new(json.data(), json.size(), &error);
  if (!handle) return invalid_argument(take_message(error));
  return std::unique_ptr<Tokenizer>(new Tokenizer(handle));
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text,
                                               const EncodeOptions& options) const {
  if (text.size() > kMaxTextBytes) {
    return out_of_range(fmt::format("text of {} bytes; at most {} are encoded at once", text.size(),
                                    kMaxTextBytes));
  }
  uint32_t flags = 0;
  if (options.control == ControlTokens::kAreMatched) flags |= BASCULE_TEXT_MATCH_CONTROL;
  if (options.add_frame) flags |= BASCULE_TEXT_ADD_FRAME;
  if (options.plain_road) flags |= BASCULE_TEXT_PLAIN_ROAD;
  uint32_t* ids = nullptr;
  size_t n_ids = 0;
  char* error = nullptr;
  if (!bascule_text_encode(handle_, text.data(), text.size(), flags, &ids, &n_ids, &error)) {
    return invalid_argument(take_message(error));
  }
  std::vector<int32_t> result(ids, ids + n_ids);
  bascule_text_ids_free(ids, n_ids);
  return result;
}

Result<std::vector<int32_t>> Tokenizer::encode_with_special(std::string_view text) const {
  return encode(text, {.control = ControlTokens::kAreMatched});
}

std::string Tokenizer::decode(std::span<const int32_t> ids, SpecialTokens special) const {
  IncrementalDecoder decoder(*this, special);
  std::string text;
  for (const int32_t id : ids) decoder.push(id, text);
  decoder.finish(text);
  return text;
}

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  uint32_t id = 0;
  if (!bascule_text_find_token(handle_, token.data(), token.size(), &id)) return std::nullopt;
  return static_cast<int32_t>(id);
}

std::optional<Token> Tokenizer::token_of(int32_t id) const {
  bascule_text_token found;
  if (id < 0 || !bascule_text_get_token(handle_, static_cast<uint32_t>(id), &found)) {
    return std::nullopt;
  }
  return Token{.id = id,
               .text = {found.text, found.text_size},
               .piece = {found.piece, found.piece_size},
               .is_added = (found.flags & BASCULE_TEXT_ADDED) != 0,
               .is_special = (found.flags & BASCULE_TEXT_SPECIAL) != 0,
               .is_control = (found.flags & BASCULE_TEXT_CONTROL) != 0,
               .is_byte = (found.flags & BASCULE_TEXT_BYTE) != 0};
}

}  // namespace bascule
