// The C door of rust/: one file of the Hugging Face format tokenizer.json, loaded and asked.
// Kept by hand beside src/lib.rs; a test compares its names with what the library exports.
//
// Every function may be called from any thread, and several at once on one tokenizer. Nothing that
// a caller passes crashes: a failing function returns null or false and, where `error` is not null,
// leaves a message there that bascule_text_error_free() takes back.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bascule_text_tokenizer bascule_text_tokenizer;

// Reads a whole tokenizer.json. Truncation and padding that it asks for are not applied.
bascule_text_tokenizer* bascule_text_tokenizer_new(const char* json, size_t size, char** error);
void bascule_text_tokenizer_free(bascule_text_tokenizer* tokenizer);
void bascule_text_error_free(char* error);

enum {
  // Text may become control tokens (see BASCULE_TEXT_CONTROL). Without it they are spelled out.
  BASCULE_TEXT_MATCH_CONTROL = 1,
  // Adds what the file's post-processor puts around one sequence, a BOS token for example.
  BASCULE_TEXT_ADD_FRAME = 2,
  // Takes the crate's own road even where the faster one fits. The ids are the same; tests and the
  // fuzzer hold the two together by it.
  BASCULE_TEXT_PLAIN_ROAD = 4,
};

// `text` is UTF-8; other bytes are an error. At most 16 MiB. The ids are the caller's until
// bascule_text_ids_free().
bool bascule_text_encode(const bascule_text_tokenizer* tokenizer, const char* text, size_t size,
                         uint32_t flags, uint32_t** ids, size_t* n_ids, char** error);
void bascule_text_ids_free(uint32_t* ids, size_t n_ids);

// How decoded pieces become text.
enum {
  BASCULE_TEXT_JOIN_BYTES = 0,  // bytes one after the other, invalid UTF-8 replaced by U+FFFD
  BASCULE_TEXT_JOIN_RUNS = 1,   // text, and runs of BYTE tokens: a run that is no UTF-8 becomes one
                                // U+FFFD a byte
  BASCULE_TEXT_JOIN_SPACED = 2,  // text, with one space between tokens
};

typedef struct {
  int join;
  uint32_t leading_spaces;  // so many spaces at the very start are dropped
  uint32_t id_end;          // every id is below
} bascule_text_decoding;

bascule_text_decoding bascule_text_get_decoding(const bascule_text_tokenizer* tokenizer);

enum {
  BASCULE_TEXT_ADDED = 1,    // from the file's added_tokens
  BASCULE_TEXT_SPECIAL = 2,  // marked special: left out of decoded text on request
  BASCULE_TEXT_CONTROL = 4,  // added, and special or with a character that is no letter, digit or
                             // white space: user text must not become this token
  BASCULE_TEXT_BYTE = 8,     // one byte of a run (BASCULE_TEXT_JOIN_RUNS)
};

// Looks into the tokenizer and lives as long.
typedef struct {
  const char* text;  // as the file spells it, UTF-8
  size_t text_size;
  const char* piece;  // what it adds to decoded text
  size_t piece_size;
  uint32_t flags;
} bascule_text_token;

// False where no token has this id.
bool bascule_text_get_token(const bascule_text_tokenizer* tokenizer, uint32_t id,
                            bascule_text_token* token);
// The ids of the added tokens, ascending. Looks into the tokenizer and lives as long.
const uint32_t* bascule_text_get_added(const bascule_text_tokenizer* tokenizer, size_t* n_ids);
// False where no token is spelled so.
bool bascule_text_find_token(const bascule_text_tokenizer* tokenizer, const char* text, size_t size,
                             uint32_t* id);

#ifdef __cplusplus
}
#endif
