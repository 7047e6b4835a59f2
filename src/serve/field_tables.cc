// The tables of fields (fields.h). A new field of an API is a line here and what reads it.
#include "serve/fields.h"

namespace bascule {
namespace {

using enum FieldUse;

// clang-format off
constexpr Field kCompletions[] = {
    {"model", kSupported, "the name that `GET /v1/models` shows; absent: that model"},
    {"prompt", kSupported, "a text, token ids, or a list of at most 128 of either; control tokens in a text are control tokens"},
    {"max_tokens", kSupported, "of each answer; absent: what the context holds"},
    {"min_tokens", kSupported, "no end before so many tokens"},
    {"temperature", kSupported, "0: the likeliest token; absent: the model's own default, as for the next four"},
    {"top_p", kSupported, ""},
    {"top_k", kSupported, "0 or -1: all"},
    {"min_p", kSupported, ""},
    {"repetition_penalty", kSupported, ""},
    {"presence_penalty", kSupported, ""},
    {"frequency_penalty", kSupported, ""},
    {"logit_bias", kSupported, "by token id"},
    {"seed", kSupported, "the same request and seed give the same answer, whatever runs beside it"},
    {"stop", kSupported, "a text, or at most 1,024; none of it is given out"},
    {"include_stop_str_in_output", kSupported, "the stop string is given out"},
    {"stop_token_ids", kSupported, ""},
    {"ignore_eos", kSupported, "go on past the model's end tokens"},
    {"n", kSupported, "1 to 128 answers to each prompt"},
    {"logprobs", kSupported, "0 to 20 likeliest tokens beside each; of the model, before temperature and filters"},
    {"echo", kSupported, "the prompt before each answer; not with `logprobs`"},
    {"stream", kSupported, "server-sent events"},
    {"stream_options", kSupported, "`include_usage`"},
    {"user", kNoEffect, ""},
    {"suffix", kRefused, "the model continues text, and fills no gap", "\"\""},
    {"best_of", kRefused, "answers are not ranked; ask for `n`", "1"},
    {"guided_json", kRefused, "answers are not constrained by a grammar yet"},
    {"response_format", kRefused, "answers are not constrained by a grammar yet", R"({"type":"text"})"},
};
constexpr Field kTokenize[] = {
    {"model", kSupported, "as in /v1/completions"},
    {"prompt", kSupported, "the text"},
};
constexpr Field kDetokenize[] = {
    {"model", kSupported, "as in /v1/completions"},
    {"tokens", kSupported, "token ids"},
};
constexpr ApiDialect kApiDialects[] = {
    {"/v1/completions", "Continues a text. Answers as OpenAI's legacy completions do.", kCompletions},
    {"/tokenize", "`{\"tokens\": [...], \"count\": N, \"max_model_len\": N}` of a text.", kTokenize},
    {"/detokenize", "`{\"prompt\": \"...\"}` of token ids.", kDetokenize},
};
// clang-format on

}  // namespace

std::span<const ApiDialect> api_dialects() { return kApiDialects; }

}  // namespace bascule
