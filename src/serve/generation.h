// One request of any dialect, once its JSON is read: some prompts, some answers to each. What comes
// of it is told to a writer, which puts it into the dialect's words.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "serve/answer_text.h"
#include "serve/http/reply.h"
#include "serve/metrics.h"

namespace bascule {

struct Generation {
  std::vector<std::vector<int32_t>> prompts;
  int n = 1;         // answers to each
  RequestSpec spec;  // of every answer, but for prompt and choice
  StopStrings stops;
  StopText stop_text = StopText::kCut;
  ReasoningMarks marks;

  int n_answers() const { return int(prompts.size()) * n; }
};

// What one token, or the end, added to an answer.
struct AnswerPiece {
  std::string_view reasoning, text;
  const TokenEvent* token = nullptr;  // null at the end
  bool in_reasoning = false;          // the token is the reasoning's, or ends it
};

struct Ending {
  EndReason reason = EndReason::kStop;  // kStop or kLength
  int32_t stop = -1;                    // which stop string ended it; -1: none
};

struct Usage {
  int64_t n_prompt_tokens = 0;  // of each prompt once
  int64_t n_cached_tokens = 0;  // of these, that were not computed again
  int64_t n_answer_tokens = 0;
  int64_t n_reasoning_tokens = 0;  // of the answers'
};

// Its calls come one after the other, on the engine's thread: they must not block. Answers are
// counted prompt by prompt. Either finish() or fail() is the last.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  virtual void begin() = 0;  // the engine has accepted all of it
  virtual void add(int answer, const AnswerPiece& piece) = 0;
  virtual void end(int answer, const Ending& ending) = 0;
  virtual void finish(const Usage& usage) = 0;
  virtual void fail(const Status& status) = 0;
};

// Submits all answers, or none: then nothing was told to the writer. `reply` is the writer's; when
// its client goes, the answers are cancelled. Engine, tokenizer and metrics outlive the answers.
Status generate(Engine& engine, const Tokenizer& tokenizer, Metrics& metrics, Generation generation,
                HttpReply& reply, std::unique_ptr<AnswerWriter> writer);

}  // namespace bascule
