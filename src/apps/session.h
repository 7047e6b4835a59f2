// Everything that answers, made once and used for each prompt of `run`: model, tokenizer, engine.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/answer.h"
#include "apps/dump.h"
#include "apps/terminal.h"
#include "base/options.h"
#include "engine/setup.h"
#include "text/glm_prompt.h"

namespace bascule {

// Needs an Interrupt to be alive: Ctrl-C ends open() and each answer with kCancelled.
class Session {
 public:
  // `model` as resolve_model() takes it.
  static Result<std::unique_ptr<Session>> open(const std::string& model, Options options);

  // Each prints what the model answers. Of ids the answer is ids, of text it is text.
  Status answer_ids(std::vector<int32_t> ids);
  Status answer_text(const std::string& prompt);
  // Prompts from a person, a line each, until an empty line or the end.
  Status converse(Input& input);

  Status finish() const;  // after the last answer: writes what --trace asks for

 private:
  explicit Session(Options options) : options_(std::move(options)) {}
  Status load(const std::string& model);
  Status pack_weights(const EngineOptions& engine);
  Status load_tokenizer();
  void tell(const std::vector<std::string>& notices) const;
  Status read_weights() const;
  std::optional<int64_t> n_valid_tokens() const;

  bool is_chat() const { return glm_ && !options_.flag("raw"); }
  std::vector<Message> opening() const;  // what stands before the first prompt
  Result<std::vector<int32_t>> encode(std::span<const Message> conversation) const;

  // Prints the answers to `prompt`; returns the text of the first, without its thinking.
  Result<std::string> answer(std::vector<int32_t> prompt, AnswerStyle style);
  Result<std::vector<RequestId>> submit(std::span<const std::shared_ptr<Answer>> answers,
                                        const RequestSpec& spec);
  void run(std::span<const RequestId> requests);
  Status check_dump(const RequestSpec& spec) const;

  Options options_;  // with the model's own defaults
  RequestSpec spec_;
  std::unique_ptr<LoadedModel> model_;
  std::unique_ptr<Tokenizer> tokenizer_;  // null: the folder has none
  std::optional<GlmPrompt> glm_;          // where the vocabulary has GLM's control tokens
  StopStrings stops_;
  EngineSetup setup_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace bascule
