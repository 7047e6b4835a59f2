#include "apps/answer.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/quote.h"

namespace bascule {

class Answer::Listener final : public RequestListener {
 public:
  explicit Listener(std::shared_ptr<Answer> answer) : answer_(std::move(answer)) {}
  Verdict on_token(const TokenEvent& event) override { return answer_->take(event); }
  void on_end(const EndEvent& event) override { answer_->finish(event); }

 private:
  std::shared_ptr<Answer> answer_;
};

Answer::Answer(const AnswerStyle& style, const Tokenizer* tokenizer, const StopStrings& stops)
    : style_(style),
      tokenizer_(tokenizer),
      stops_(stops),
      thinking_(style.in_thinking),
      started_(std::chrono::steady_clock::now()) {
  if (tokenizer_) decoder_.emplace(*tokenizer_, SpecialTokens::kSkip);
  if (thinking_ && style_.colour) print("\x1b[2m");
}

std::unique_ptr<RequestListener> Answer::listener() {
  return std::make_unique<Listener>(shared_from_this());
}

RequestListener::Verdict Answer::take(const TokenEvent& event) {
  last_ = std::chrono::steady_clock::now();
  if (tokens_.empty()) first_ = last_;
  tokens_.push_back(event.token);
  if (!event.top_logprobs.empty() || event.logprob != 0) print_logprobs(event);
  if (style_.as_ids) {
    print(fmt::format("{}{}", tokens_.size() > 1 ? "," : "", event.token));
  } else if (thinking_ && event.token == style_.think_end) {
    end_thinking();
  } else {
    std::string piece, out;
    decoder_->push(event.token, piece);
    stops_.push(piece, out);
    say(out);
  }
  return stops_.stopped() ? RequestListener::Verdict::kStop : RequestListener::Verdict::kGoOn;
}

void Answer::say(const std::string& piece) {
  if (!thinking_) text_ += piece;
  if (!thinking_ || !style_.quiet) print(piece);
}

void Answer::end_thinking() {
  std::string piece, out;
  decoder_->finish(piece);
  decoder_.emplace(*tokenizer_, SpecialTokens::kSkip);
  stops_.push(piece, out);
  say(out);
  thinking_ = false;
  if (style_.colour) print("\x1b[0m");
  if (!style_.quiet) print("\n");
}

void Answer::finish(const EndEvent& event) {
  end_ = event;
  if (event.stop_token) tokens_.push_back(*event.stop_token);
  if (!style_.as_ids) {
    std::string piece, out;
    decoder_->finish(piece);
    if (!stops_.stopped()) {
      stops_.push(piece, out);
      stops_.finish(out);
    }
    say(out);
  }
  if (style_.colour && thinking_) print("\x1b[0m");
  if (style_.streams) print("\n");
}

void Answer::print(const std::string& piece) {
  printed_ += piece;
  if (!style_.streams || piece.empty()) return;
  std::fwrite(piece.data(), 1, piece.size(), stdout);
  std::fflush(stdout);
}

void Answer::print_logprobs(const TokenEvent& event) {
  const auto spelled = [&](int32_t id) {
    const auto token = tokenizer_ ? tokenizer_->token_of(id) : std::nullopt;
    return token ? fmt::format("{} {}", id, in_quotes(token->piece)) : fmt::format("{}", id);
  };
  std::string line =
      fmt::format("{:>5}  {}  {:.4f}", event.index, spelled(event.token), event.logprob);
  for (const TokenLogprob& top : event.top_logprobs)
    line += fmt::format("  | {}  {:.4f}", spelled(top.token), top.logprob);
  fmt::print(stderr, "{}\n", line);
}

std::string Answer::summary() const {
  const auto seconds = [](auto a, auto b) { return std::chrono::duration<double>(b - a).count(); };
  std::string rate;
  if (tokens_.size() > 1)
    rate = fmt::format(", {:.1f} tokens/s", double(tokens_.size() - 1) / seconds(first_, last_));
  return fmt::format("[{} prompt tokens, {} answer tokens, first after {:.2f} s{}; ended by {}]",
                     end_.n_prompt_tokens, end_.n_answer_tokens,
                     tokens_.empty() ? 0.0 : seconds(started_, first_), rate, name(end_.reason));
}

}  // namespace bascule
