// The one table of options. A new option is a line here; help, completion, the environment's names
// and the configuration file's keys follow from it.
#include "base/options.h"

namespace bascule {
namespace {

using enum OptionKind;

constexpr std::string_view kEngine = "run plan serve";
constexpr std::string_view kAsks = "run serve";  // serve: what a request leaves open

// clang-format off
const OptionRow kRows[] = {
    // name, kind, built in, value name, commands, group,
    //     help, choices, aliases, least, most
    {"config", kText, "", "FILE", "*", "General",
     "take options from a TOML file"},
    {"log-level", kText, "warning", "LEVEL", "*", "General",
     "how much is logged", "debug info warning error off"},
    {"json", kFlag, "", "", "plan inspect config", "General",
     "print JSON"},
    {"help", kFlag, "", "", "*", "General",
     "print this and stop"},

    {"check", kFlag, "", "", "inspect", "Inspection",
     "read every weight and report NaN and infinity"},
    {"explain", kText, "", "OP", "plan", "Planning",
     "for one op or site: every row, and why each was refused"},

    {"raw", kFlag, "", "", "run", "Prompt",
     "run the text as it is, without the chat format"},
    {"prompt-ids", kText, "", "IDS", "run", "Prompt",
     "token ids instead of text: 5,6,7, or @FILE that holds them"},
    {"system", kText, "", "TEXT", "run", "Prompt",
     "what the model is told before the conversation"},
    {"no-thinking", kFlag, "", "", "run", "Prompt",
     "ask the model to answer without thinking"},

    {"max-tokens", kInteger, "", "N", kAsks, "Answer",
     "longest answer; without it, what the context holds", {}, {}, 1},
    {"min-tokens", kInteger, "0", "N", "run", "Answer",
     "no end before so many tokens", {}, {}, 0},
    {"stop", kList, "", "TEXT", "run", "Answer",
     "end before this text; may be repeated"},
    {"stop-token-ids", kText, "", "IDS", "run", "Answer",
     "end at any of these token ids"},
    {"ignore-eos", kFlag, "", "", "run", "Answer",
     "go on past the model's end tokens"},
    {"n", kInteger, "1", "N", "run", "Answer",
     "how many answers", {}, {}, 1, 1024},

    {"temperature", kNumber, "1", "T", kAsks, "Sampling",
     "0: always the likeliest token", {}, {}, 0, 100},
    {"top-p", kNumber, "1", "P", kAsks, "Sampling",
     "draw among the likeliest tokens of this total probability", {}, {}, 0, 1},
    {"top-k", kInteger, "0", "K", kAsks, "Sampling",
     "draw among the K likeliest; 0: all", {}, {}, 0, 2147483647},
    {"min-p", kNumber, "0", "P", kAsks, "Sampling",
     "drop tokens less likely than P times the likeliest", {}, {}, 0, 1},
    {"presence-penalty", kNumber, "0", "X", kAsks, "Sampling",
     "taken from the logit of each token of the answer so far", {}, {}, -2, 2},
    {"frequency-penalty", kNumber, "0", "X", kAsks, "Sampling",
     "the same, for each time it occurs", {}, {}, -2, 2},
    {"repetition-penalty", kNumber, "1", "X", kAsks, "Sampling",
     "divides positive and multiplies negative logits of tokens seen", {}, {}, 0.01, 100},
    {"logit-bias", kText, "", "ID:X,...", "run", "Sampling",
     "added to the logits of these tokens"},
    {"seed", kInteger, "", "N", "run", "Sampling",
     "the same seed gives the same answer", {}, {}, 0},
    {"logprobs", kInteger, "", "N", "run", "Sampling",
     "print each token's log-probability and the N likeliest", {}, {}, 0, 20},

    {"host", kText, "127.0.0.1", "IP", "serve", "Server",
     "the address to listen on; 0.0.0.0: all interfaces"},
    {"port", kInteger, "8000", "N", "serve", "Server",
     "the port to listen on; 0: any that is free", {}, {}, 0, 65535},
    {"served-model-name", kText, "", "NAME", "serve", "Server",
     "what clients call the model; else its folder's name"},
    {"api-key", kList, "", "KEY", "serve", "Server",
     "clients must send this key; may be repeated. Better in BASCULE_API_KEY or a file"},
    {"api-key-file", kText, "", "FILE", "serve", "Server",
     "keys in a file, a line \"KEY\" or \"NAME KEY\" each"},
    {"cors-origin", kList, "", "ORIGIN", "serve", "Server",
     "web pages of this origin may ask; *: of any; may be repeated"},
    {"max-queued", kInteger, "4096", "N", "serve", "Server",
     "requests that wait for their turn; more are refused with 429", {}, {}, 1, 1000000},
    {"max-connections", kInteger, "16384", "N", "serve", "Server",
     "connections at one time; more are refused with 503", {}, {}, 1, 1000000},
    {"max-body-bytes", kBytes, "32MiB", "BYTES", "serve", "Server",
     "longest request"},
    {"drain-seconds", kInteger, "30", "N", "serve", "Server",
     "after SIGTERM, so long answers may go on; a second signal stops at once", {}, {}, 0, 86400},

    {"kernels", kText, "auto", "MODE", kEngine, "Engine",
     "reference: the plain loops that define what is right", "reference fast auto"},
    {"activations", kText, "auto", "TYPE", kEngine, "Engine",
     "what products read; auto: f32 with reference kernels, else bf16, and int8 with MXFP4 weights",
     "f32 bf16 int8 int8-all fp8 declared auto"},
    {"pack-cache", kText, "", "FOLDER", kEngine, "Engine",
     "where weights in kernel layout are kept; off: nowhere; else ~/.cache/bascule/packed"},
    {"kv-cache-dtype", kText, "auto", "TYPE", kEngine, "Engine",
     "what the cache stores; auto: as the activations", "f32 bf16 auto"},
    {"latent-norm-eps", kNumber, "", "EPS", "run plan inspect serve", "Engine",
     "epsilon of q_a_layernorm and kv_a_layernorm; else the family's", {}, {}, 0, 1},
    {"k-norm-eps", kNumber, "", "EPS", "run plan inspect serve", "Engine",
     "epsilon of the indexer's k_norm; else the family's", {}, {}, 0, 1},
    {"max-model-len", kInteger, "", "N", kEngine, "Engine",
     "longest prompt and answer; else the model's limit, if it fits", {}, {}, 1},
    {"max-num-seqs", kInteger, "", "N", kEngine, "Engine",
     "requests that run at once; else 64, or --n of run", {}, {}, 1, 65536},
    {"max-batch-tokens", kInteger, "512", "N", kEngine, "Engine",
     "tokens of one step", {}, "max-num-batched-tokens", 1, 65536},
    {"kv-cache-bytes", kBytes, "", "BYTES", kEngine, "Engine",
     "size of the cache (4GiB); else what the requests can use"},
    {"no-prefix-cache", kFlag, "", "", "run", "Engine",
     "compute each prompt from its first token, whatever is cached"},
    {"tp", kInteger, "1", "N", kEngine, "Ranks",
     "ranks that share each attention and each MLP", {}, "tensor-parallel-size", 1, 64},
    {"ep", kInteger, "1", "N", kEngine, "Ranks",
     "ranks that share the experts, whole ones each", {}, "expert-parallel-size", 1, 64},
    {"dp", kInteger, "1", "N", kEngine, "Ranks",
     "groups of ranks with requests and caches of their own", {}, "data-parallel-size", 1, 64},
    {"threads", kInteger, "", "N", kEngine, "Ranks",
     "threads of all ranks together; else one a processor", {}, {}, 1, 4096},
    {"cpu-target", kText, "auto", "ISA", kEngine, "Ranks",
     "use no newer instruction set than this (avx2, avx512, ...)"},

    {"dump", kText, "", "FILE", "run", "Output",
     "write hidden states and logits of every position as safetensors"},
    {"trace", kText, "", "FILE", "run", "Output",
     "write where the time went, as a timeline for ui.perfetto.dev"},
    {"quiet", kFlag, "", "", "run", "Output",
     "print the answer alone"},
};
// clang-format on

}  // namespace

std::span<const OptionRow> option_rows() { return kRows; }

}  // namespace bascule
