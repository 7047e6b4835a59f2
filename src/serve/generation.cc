#include "serve/generation.h"

#include <chrono>
#include <mutex>
#include <utility>

namespace bascule {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

// All answers of one request. Lives as long as the last listener.
class Answers : public std::enable_shared_from_this<Answers> {
 public:
  Answers(Engine& engine, const Tokenizer& tokenizer, Metrics& metrics, Generation generation,
          std::unique_ptr<AnswerWriter> writer);

  Status submit();
  void cancel();  // after submit()

 private:
  class Listener;
  struct Answer {
    AnswerText text;
    Clock::time_point last_token;
    bool has_token = false;
  };

  RequestListener::Verdict take(int answer, const TokenEvent& event);
  void time(Answer& answer);
  void finish(int answer, const EndEvent& event);
  void fail(const Status& status);

  Engine& engine_;
  Metrics& metrics_;
  Generation generation_;
  std::unique_ptr<AnswerWriter> writer_;
  const Clock::time_point started_ = Clock::now();
  std::vector<Answer> answers_;
  int n_running_ = 0;
  Usage usage_;
  bool has_failed_ = false;

  // Held while requests are submitted: the engine may run the first before the last is there, and
  // what it says must wait until all are accepted. Later it is free.
  std::mutex mutex_;
  std::vector<RequestId> ids_;
};

class Answers::Listener final : public RequestListener {
 public:
  Listener(std::shared_ptr<Answers> answers, int answer)
      : answers_(std::move(answers)), answer_(answer) {}
  Verdict on_token(const TokenEvent& event) override { return answers_->take(answer_, event); }
  void on_end(const EndEvent& event) override { answers_->finish(answer_, event); }

 private:
  std::shared_ptr<Answers> answers_;
  int answer_;
};

Answers::Answers(Engine& engine, const Tokenizer& tokenizer, Metrics& metrics,
                 Generation generation, std::unique_ptr<AnswerWriter> writer)
    : engine_(engine),
      metrics_(metrics),
      generation_(std::move(generation)),
      writer_(std::move(writer)) {
  for (int i = 0; i < generation_.n_answers(); ++i)
    answers_.push_back({.text = AnswerText(tokenizer, generation_.stops, generation_.stop_text,
                                           generation_.marks)});
  for (const auto& prompt : generation_.prompts) usage_.n_prompt_tokens += int64_t(prompt.size());
}

Status Answers::submit() {
  const std::scoped_lock lock(mutex_);
  for (int i = 0; i < generation_.n_answers(); ++i) {
    RequestSpec spec = generation_.spec;
    spec.prompt = generation_.prompts[size_t(i / generation_.n)];
    spec.sampling.choice = i % generation_.n;
    const Result<RequestId> id =
        engine_.submit(std::move(spec), std::make_unique<Listener>(shared_from_this(), i));
    if (!id.ok()) {
      has_failed_ = true;
      for (const RequestId earlier : ids_) engine_.cancel(earlier);
      return id.status();
    }
    ids_.push_back(*id);
    ++n_running_;
    ++metrics_.n_running;
  }
  writer_->begin();
  return {};
}

void Answers::cancel() {
  ++metrics_.n_cancelled;
  for (const RequestId id : ids_) engine_.cancel(id);
}

RequestListener::Verdict Answers::take(int answer, const TokenEvent& event) {
  const std::scoped_lock lock(mutex_);
  if (has_failed_) return RequestListener::Verdict::kStop;
  Answer& a = answers_[size_t(answer)];
  time(a);
  const bool in_reasoning = a.text.is_reasoning();
  if (in_reasoning) ++usage_.n_reasoning_tokens;
  const AnswerText::Added added = a.text.push(event.token);
  writer_->add(answer, {.reasoning = added.reasoning,
                        .text = added.text,
                        .token = &event,
                        .in_reasoning = in_reasoning});
  return a.text.stopped() ? RequestListener::Verdict::kStop : RequestListener::Verdict::kGoOn;
}

void Answers::time(Answer& answer) {
  const auto now = Clock::now();
  if (answer.has_token) {
    metrics_.between_tokens.add(seconds(now - answer.last_token));
  } else {
    metrics_.first_token.add(seconds(now - started_));
  }
  answer.has_token = true;
  answer.last_token = now;
  ++metrics_.n_answer_tokens;
}

void Answers::finish(int answer, const EndEvent& event) {
  const std::scoped_lock lock(mutex_);
  --metrics_.n_running;
  --n_running_;
  if (has_failed_) return;
  if (event.reason == EndReason::kFailed) return fail(internal(event.message));
  if (event.reason == EndReason::kCancelled) {
    has_failed_ = true;  // as all of them are: together
    return writer_->fail(cancelled(event.message));
  }
  Answer& a = answers_[size_t(answer)];
  const AnswerText::Added added = a.text.finish();
  if (!added.reasoning.empty() || !added.text.empty())
    writer_->add(answer, {.reasoning = added.reasoning, .text = added.text});
  writer_->end(answer, {.reason = event.reason, .stop = a.text.stop()});
  if (answer % generation_.n == 0) usage_.n_cached_tokens += event.n_cached_tokens;
  usage_.n_answer_tokens += event.n_answer_tokens;
  metrics_.whole_answer.add(seconds(Clock::now() - started_));
  if (n_running_ > 0) return;
  metrics_.n_prompt_tokens += usage_.n_prompt_tokens;
  writer_->finish(usage_);
}

// One answer's failure is that of all: the client asked for all of them.
void Answers::fail(const Status& status) {
  has_failed_ = true;
  ++metrics_.n_failed;
  for (const RequestId id : ids_) engine_.cancel(id);
  writer_->fail(status);
}

}  // namespace

Status generate(Engine& engine, const Tokenizer& tokenizer, Metrics& metrics, Generation generation,
                HttpReply& reply, std::unique_ptr<AnswerWriter> writer) {
  const auto answers = std::make_shared<Answers>(engine, tokenizer, metrics, std::move(generation),
                                                 std::move(writer));
  BASCULE_TRY(answers->submit());
  reply.on_gone([answers] { answers->cancel(); });
  return {};
}

}  // namespace bascule
