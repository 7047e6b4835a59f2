// The API over a fake model with the demo model's tokenizer, without sockets: for tests. Workers
// run at once, and the engine whenever it is asked to.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "serve/api.h"
#include "support/recording_reply.h"
#include "support/test_engine.h"

namespace bascule {

class TestApi {
 public:
  explicit TestApi(ApiOptions options = {}, TestEngine::Options engine = {})
      : tokenizer_(
            Tokenizer::from_folder(std::string(BASCULE_TEST_DATA) + "/../models/demo").value()),
        engine_(with_vocabulary(std::move(engine), tokenizer_->vocab_size())),
        api_(served(), std::move(options), [](auto work) { work(); }) {
    BASCULE_CHECK(api_.warm_up().ok());
    engine_->run_until_idle();
  }

  std::shared_ptr<RecordingReply> begin(HttpRequest request) {
    auto reply = std::make_shared<RecordingReply>();
    request.id = "req-1";
    api_.handle(std::move(request), reply);
    return reply;
  }
  std::shared_ptr<RecordingReply> post(std::string path, std::string body,
                                       std::vector<HttpHeader> headers = {}) {
    auto reply = begin({.method = "POST",
                        .path = std::move(path),
                        .headers = std::move(headers),
                        .body = std::move(body)});
    engine_->run_until_idle();
    return reply;
  }
  std::shared_ptr<RecordingReply> get(std::string path, std::vector<HttpHeader> headers = {}) {
    return begin({.method = "GET", .path = std::move(path), .headers = std::move(headers)});
  }

  Api& api() { return api_; }
  TestEngine& engine() { return engine_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  static TestEngine::Options with_vocabulary(TestEngine::Options options, int64_t vocab_size) {
    options.model.vocab_size = vocab_size;
    return options;
  }
  ServedModel served() {
    return {.engine = &*engine_,
            .tokenizer = tokenizer_.get(),
            .glm = &*glm_,
            .name = "fake",
            .plan_json = "{}",
            .version = "1"};
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<GlmPrompt> glm_ = GlmPrompt::of(*tokenizer_);
  TestEngine engine_;
  Api api_;
};

inline Json parsed(const std::string& text) { return parse_json(text, "test").value(); }

// {"error": {"message": ...}}'s message.
inline std::string error_message(const RecordingReply& reply) {
  return parsed(reply.response.body)["error"]["message"];
}

}  // namespace bascule
