// A request from submission to its end. Its states are types, and each owns what it holds: leaving
// a state gives the pages back, whatever the reason.
//
//   Waiting ──start──▶ Prefilling ──last token run──▶ Decoding ──▶ Finished
//      ▲                   │                             │
//      └─────preempt───────┴─────────────────────────────┘       any ──finish──▶ Finished
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/kv/cache.h"
#include "engine/sampling.h"

namespace bascule {

using RequestId = uint64_t;  // ascending in order of submission; never reused

enum class EndReason {
  kStop,       // an end token, a stop token, or the listener's word
  kLength,     // max_tokens, or the context is full
  kCancelled,  // somebody asked for it
  kFailed,     // message says why
};
std::string_view name(EndReason reason);  // "stop"

// A token of the answer, as it arrives.
struct TokenEvent {
  RequestId request = 0;
  int32_t token = -1;
  int64_t index = 0;                           // in the answer, from 0
  float logprob = 0;                           // if asked for
  std::span<const TokenLogprob> top_logprobs;  // likeliest first; valid during the call
};

// The one event that ends each request.
struct EndEvent {
  RequestId request = 0;
  EndReason reason = EndReason::kFailed;
  std::string message;                // of kFailed and kCancelled
  std::optional<int32_t> stop_token;  // the token that ended it; no TokenEvent came for it
  int64_t n_prompt_tokens = 0;
  int64_t n_answer_tokens = 0;  // all that were drawn, the stop token among them
  int64_t n_cached_tokens = 0;  // of the prompt: rows that were there when it first started
  int64_t n_preemptions = 0;
};

// Hears what becomes of one request. Called on the engine's thread between steps, so it must not
// block; it may submit and cancel. Text is decoded and stop strings are matched here, by the layers
// that know text: the verdict takes effect before another token is run.
class RequestListener {
 public:
  enum class Verdict { kGoOn, kStop };
  virtual ~RequestListener() = default;
  virtual Verdict on_token(const TokenEvent& event) = 0;
  virtual void on_end(const EndEvent& event) = 0;
};

// Sees every position that is run, for `run --dump`: positions ascend, and a preempted request's
// may come again. Called on a rank's thread during a step; one request's calls are never
// concurrent.
class RowRecorder {
 public:
  virtual ~RowRecorder() = default;
  // The residual stream as it enters `layer`; the state after the final norm at n_layers.
  virtual void on_hidden(int64_t layer, int64_t position, View<const float, 1> row) = 0;
  virtual void on_logits(int64_t position, View<const float, 1> row) = 0;
};

// What the caller asks for.
struct RequestSpec {
  std::vector<int32_t> prompt;        // at least one token
  std::optional<int64_t> max_tokens;  // of the answer; absent: as many as the context holds
  int64_t min_tokens = 0;             // no end or stop token is drawn before
  std::vector<int32_t> stop_tokens;   // besides the model's own end tokens
  bool ignore_eos = false;            // the model's end tokens are tokens like others
  SamplingParams sampling;
  std::string cache_salt;           // rows are shared among requests with the same one alone
  bool reuses_prefix = true;        // else every position is run, whatever is cached
  RowRecorder* recorder = nullptr;  // must outlive the request
};

struct Waiting {};
struct Prefilling {
  PageRun pages;         // for all its tokens, from the start
  int64_t n_cached = 0;  // tokens whose rows are in them
  PageHold copied_from;  // until the next tokens were run: the last of those rows come from here
};
struct Decoding {
  PageRun pages;  // hold all tokens but the last
};
struct Finished {
  EndReason reason;
  PageRun pages;  // until the scheduler has kept what is worth keeping
  int64_t n_cached = 0;
};

// What a model says about its tokens.
struct TokenRules {
  int64_t vocab_size = 0;
  int64_t n_valid_tokens = 0;       // ids from here on are padding of the vocabulary
  std::vector<int32_t> end_tokens;  // "eos"
};

// Belongs to the scheduler, and to the engine's thread.
class Request {
 public:
  // `max_tokens` is the answer's length at most, `seed` for a request without one. The spec has
  // been validated.
  Request(RequestId id, RequestSpec spec, std::unique_ptr<RequestListener> listener,
          const TokenRules& rules, int64_t max_tokens, uint64_t seed);

  RequestId id() const { return id_; }
  std::span<const int32_t> tokens() const { return tokens_; }  // prompt, then the answer so far
  int64_t n_tokens() const { return int64_t(tokens_.size()); }
  int64_t n_answer() const { return n_tokens() - n_prompt_; }
  int64_t max_total_tokens() const { return n_prompt_ + max_tokens_; }
  RowRecorder* recorder() const { return recorder_; }
  const Sampler& sampler() const { return sampler_; }
  // Ids that may not be drawn now: those that would end the answer too early.
  std::span<const int32_t> masked_tokens() const;

  template <typename State>
  bool is() const {
    return std::holds_alternative<State>(state_);
  }
  PageRun& pages();          // of any state but Waiting
  int64_t n_cached() const;  // tokens whose rows are in its pages
  int64_t n_to_run() const { return n_tokens() - n_cached(); }
  std::string_view cache_salt() const { return cache_salt_; }
  bool reuses_prefix() const { return reuses_prefix_; }
  // Not none: rows of the page that the next token goes to have to be copied from this one.
  std::optional<int32_t> copied_from() const;
  // The tokens whose rows others may read: none of a request that failed, whose rows may be why.
  std::span<const int32_t> sound_tokens() const;

  void start(KvCache::Start start);  // Waiting to Prefilling
  void preempt();                    // a running state to Waiting: pages go back, tokens stay

  // The next n tokens were run. If they were the last ones, what was drawn from them follows.
  void ran(int64_t n);
  void take(const Sampled& sampled);

  // From any state. The listener hears of it once.
  void finish(EndReason reason, std::string message = {}, std::optional<int32_t> stop_token = {});

 private:
  bool ends_answer(int32_t token) const;

  RequestId id_;
  std::vector<int32_t> tokens_;
  int64_t n_prompt_, max_tokens_, min_tokens_;
  std::vector<int32_t> stop_tokens_;  // the model's end tokens among them, unless ignored
  Sampler sampler_;
  RowRecorder* recorder_;
  std::unique_ptr<RequestListener> listener_;  // may be null
  std::string cache_salt_;
  bool reuses_prefix_;
  int64_t n_found_ = 0;  // rows that were there when it first started
  int64_t n_preemptions_ = 0;
  std::variant<Waiting, Prefilling, Decoding, Finished> state_;
};

}  // namespace bascule
