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
constexpr Field kChat[] = {
    {"model", kSupported, "the name that `GET /v1/models` shows; absent: that model"},
    {"messages", kSupported, "of system, developer, user and assistant; `content` is a text, null, or a list of parts of type text"},
    {"max_completion_tokens", kSupported, "of each answer, reasoning included; absent: what the context holds"},
    {"max_tokens", kSupported, "the older name; the newer one wins"},
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
    {"n", kSupported, "1 to 128 answers"},
    {"logprobs", kSupported, "of the content's tokens; of the model, before temperature and filters"},
    {"top_logprobs", kSupported, "0 to 20 likeliest tokens beside each"},
    {"enable_thinking", kSupported, "false: the model answers without reasoning, else it comes as `reasoning_content`"},
    {"chat_template_kwargs", kSupported, "`enable_thinking`"},
    {"reasoning_effort", kSupported, "`none`: no reasoning; any other: reasoning"},
    {"stream", kSupported, "server-sent events"},
    {"stream_options", kSupported, "`include_usage`"},
    {"user", kNoEffect, ""},
    {"store", kNoEffect, "nothing is stored"},
    {"metadata", kNoEffect, ""},
    {"service_tier", kNoEffect, ""},
    {"tool_choice", kNoEffect, "there are no tools"},
    {"parallel_tool_calls", kNoEffect, "there are no tools"},
    {"tools", kRefused, "tool calls are not read here yet", "[]"},
    {"functions", kRefused, "tool calls are not read here yet", "[]"},
    {"response_format", kRefused, "answers are not constrained by a grammar yet", R"({"type":"text"})"},
    {"modalities", kRefused, "answers are texts", R"(["text"])"},
    {"audio", kRefused, "answers are texts"},
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
    {"/v1/chat/completions", "Answers a conversation, as OpenAI's chat completions do.", kChat},
    {"/v1/completions", "Continues a text. Answers as OpenAI's legacy completions do.", kCompletions},
    {"/tokenize", "`{\"tokens\": [...], \"count\": N, \"max_model_len\": N}` of a text.", kTokenize},
    {"/detokenize", "`{\"prompt\": \"...\"}` of token ids.", kDetokenize},
};
// clang-format on

}  // namespace

std::span<const ApiDialect> api_dialects() { return kApiDialects; }

}  // namespace bascule
