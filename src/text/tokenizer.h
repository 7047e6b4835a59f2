// Text to token ids and back, as the model's tokenizer.json says. The work is done by the Rust
// library in rust/ (Hugging Face `tokenizers`); this is its only caller. docs/text.md has the
// rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

struct bascule_text_tokenizer;

namespace bascule {

// One entry of the vocabulary. Views look into the Tokenizer.
struct Token {
  int32_t id = 0;
  std::string_view text;   // as the file spells it; `id_of` finds it by this
  std::string_view piece;  // what it adds to decoded text; may be a part of a character
  bool is_added = false;   // from added_tokens
  bool is_special = false;
  bool is_control = false;  // user text must not become this token
  bool is_byte = false;     // one byte of a run that becomes text as a whole
};

// How pieces become text.
enum class Joining {
  kBytes,   // bytes one after the other; what is no UTF-8 becomes U+FFFD
  kRuns,    // text; a run of byte tokens is text if all of it is UTF-8, else U+FFFD for each
  kSpaced,  // text with a space between tokens
};

struct DecodeRules {
  Joining joining = Joining::kBytes;
  uint32_t n_leading_spaces = 0;  // dropped at the very start of a text
};

enum class ControlTokens {
  kAreText,    // "<|user|>" is eight characters: right for all that users, tools and files say
  kAreMatched  // "<|user|>" is one token: right for the text of a chat template only
};

enum class SpecialTokens { kKeep, kSkip };

struct EncodeOptions {
  ControlTokens control = ControlTokens::kAreText;
  bool add_frame = false;   // adds what the file's post-processor puts around a text, such as BOS
  bool plain_road = false;  // takes the slower of two roads to the same ids, for tests
};

// Immutable; every member may be called from any thread, several at once.
class Tokenizer {
 public:
  static constexpr size_t kMaxTextBytes = size_t{16} << 20;  // of one encode
  static constexpr size_t kMaxFileBytes = size_t{256} << 20;

  // `folder`/tokenizer.json; kNotFound where there is none.
  static Result<std::unique_ptr<Tokenizer>> from_folder(const std::filesystem::path& folder);
  static Result<std::unique_ptr<Tokenizer>> from_json(std::string_view json);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // kInvalidArgument where `text` is no UTF-8 or the vocabulary can not spell it, kOutOfRange past
  // kMaxTextBytes. Linear in time but for the merging of one word, which is O(n log n).
  Result<std::vector<int32_t>> encode(std::string_view text,
                                      const EncodeOptions& options = {}) const;
  // For text that a chat template wrote: control tokens in it are matched.
  Result<std::vector<int32_t>> encode_with_special(std::string_view text) const;

  // The whole text of `ids`. An id that has no token adds nothing.
  std::string decode(std::span<const int32_t> ids,
                     SpecialTokens special = SpecialTokens::kKeep) const;

  std::optional<int32_t> id_of(std::string_view token) const;
  std::optional<Token> token_of(int32_t id) const;
  int32_t vocab_size() const { return vocab_size_; }  // every id is below
  const std::vector<Token>& added_tokens() const { return added_; }
  const DecodeRules& decoding() const { return decoding_; }

 private:
  explicit Tokenizer(bascule_text_tokenizer* handle);

  bascule_text_tokenizer* handle_;  // owned
  int32_t vocab_size_ = 0;
  DecodeRules decoding_;
  std::vector<Token> added_;  // by id
};

}  // namespace bascule
