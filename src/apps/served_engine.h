// The model that `serve` serves: opened, planned, and an engine over it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/options.h"
#include "engine/setup.h"
#include "serve/call.h"

namespace bascule {

class ServedEngine {
 public:
  // `model` as resolve_model() takes it. Needs an Interrupt to be alive: it ends this with
  // kCancelled. Tells what it does on standard error.
  static Result<std::unique_ptr<ServedEngine>> open(const std::string& model, Options options);

  // Looks into this.
  ServedModel served() const;
  Engine& engine() { return *engine_; }
  std::string plan_text() const { return plan_text_; }

 private:
  explicit ServedEngine(Options options) : options_(std::move(options)) {}
  Status load(const std::string& model);
  Status load_weights();
  void describe_plan();

  Options options_;  // with the model's own defaults
  RequestSpec defaults_;
  std::unique_ptr<LoadedModel> model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<GlmPrompt> glm_;  // where the vocabulary has GLM's control tokens
  EngineSetup setup_;
  std::string plan_text_, plan_json_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace bascule
