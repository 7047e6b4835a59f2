// An engine over fake models: for tests.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "support/fake_model.h"
#include "support/listeners.h"

namespace bascule {

class TestEngine {
 public:
  struct Options {
    FakeModel::Options model;
    Layout layout;
    int n_threads = 1;
    int64_t n_pages = 64, max_context = 128, max_batch_tokens = 16, max_requests = 8;
    std::vector<int32_t> end_tokens;
    int64_t n_valid_tokens = INT64_MAX;
    int64_t max_queued = 4096;
    bool poison = true;
    bool keeps_prefixes = true;
  };

  explicit TestEngine(Options o) : o_(std::move(o)) {
    o_.model.max_logit_rows = std::max(o_.model.max_logit_rows, o_.max_requests);
    EngineParts parts{.scheduler = {.n_groups = o_.layout.dp,
                                    .n_pages = o_.n_pages,
                                    .page_size = o_.model.page_size,
                                    .max_context = o_.max_context,
                                    .max_batch_tokens = o_.max_batch_tokens,
                                    .max_requests = o_.max_requests,
                                    .max_logit_rows = o_.model.max_logit_rows,
                                    .keeps_prefixes = o_.keeps_prefixes},
                      .runner = {.layout = o_.layout,
                                 .n_threads = o_.n_threads,
                                 .vocab_size = o_.model.vocab_size},
                      .rules = {.vocab_size = o_.model.vocab_size,
                                .n_valid_tokens = o_.n_valid_tokens,
                                .end_tokens = o_.end_tokens},
                      .max_queued = o_.max_queued,
                      .page_bytes = FakeModel::page_bytes(o_.model)};
    for (int r = 0; r < o_.layout.world(); ++r) {
      Buffer pages = Buffer::reserve(o_.n_pages * parts.page_bytes, "pages").value();
      if (o_.poison) parts.poisoned_pages.push_back(pages.data());
      parts.models.push_back(std::make_unique<FakeModel>(o_.model, pages.data()));
      parts.memory.push_back(std::move(pages));
    }
    engine_ = Engine::create(std::move(parts)).value();
  }

  Engine* operator->() { return engine_.get(); }
  Engine& operator*() { return *engine_; }

  // Submits a request that must be accepted. The answer lives as long as this.
  Answer& ask(RequestSpec spec,
              std::function<RequestListener::Verdict(const TokenEvent&)> verdict = {}) {
    answers_.push_back(std::make_unique<Answer>());
    Answer& answer = *answers_.back();
    answer.id =
        engine_
            ->submit(std::move(spec), std::make_unique<KeepingListener>(answer, std::move(verdict)))
            .value();
    return answer;
  }

  std::vector<int32_t> expected(std::vector<int32_t> prompt, int64_t n) const {
    return FakeModel::answer(std::move(prompt), n, o_.model.vocab_size);
  }

 private:
  Options o_;
  std::vector<std::unique_ptr<Answer>> answers_;  // outlive the engine: it ends what still runs
  std::unique_ptr<Engine> engine_;
};

}  // namespace bascule
