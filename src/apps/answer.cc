#include "apps/answer.h"

#include <fmt/format.h>

#include "apps/terminal.h"
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
  if (thinking_) begin_thinking();
}

std::unique_ptr<RequestListener> Answer::listener() {
  return std::make_unique<Listener>(shared_from_this());
}

RequestListener::Verdict Answer::take(const TokenEvent& event) {
  last_ = std::chrono::steady_clock::now();
  if (tokens_.empty()) first_ = last_;
  if (style_.logprobs) print_logprobs(event);
  style_.as_ids ? take_id(event.token) : take_text(event.token);
  const bool is_lost = style_.streams && !flush_output().ok();  // nobody reads it any more
  return stops_.stopped() || is_lost ? RequestListener::Verdict::kStop
                                     : RequestListener::Verdict::kGoOn;
}

void Answer::take_id(int32_t token) {
  print(fmt::format("{}{}", tokens_.empty() ? "" : ",", token));
  tokens_.push_back(token);
  if (!decoder_) return;
  std::string piece, out;
  decoder_->push(token, piece);
  stops_.push(piece, out);
}

void Answer::take_text(int32_t token) {
  tokens_.push_back(token);
  if (thinking_ && token == style_.think_end) return end_thinking();
  BASCULE_CHECK(decoder_);  // text needs a tokenizer
  std::string piece, out;
  decoder_->push(token, piece);
  stops_.push(piece, out);
  say(out);
}

// What the decoder held back, a started character for example.
void Answer::flush_decoder() {
  BASCULE_CHECK(decoder_);
  std::string piece, out;
  decoder_->finish(piece);
  decoder_.emplace(*tokenizer_, SpecialTokens::kSkip);
  stops_.push(piece, out);
  say(out);
}

void Answer::begin_thinking() {
  if (!style_.quiet) print(style_.colour ? "\x1b[2m" : "<think>");
}

void Answer::end_thinking() {
  flush_decoder();
  thinking_ = false;
  if (!style_.quiet) print(style_.colour ? "\x1b[0m\n" : "</think>\n");
}

void Answer::finish(const EndEvent& event) {
  end_ = event;
  if (style_.as_ids) {
    if (event.stop_token) take_id(*event.stop_token);
  } else {
    if (event.stop_token) tokens_.push_back(*event.stop_token);
    flush_decoder();
    std::string held;
    if (!stops_.stopped()) stops_.finish(held);
    say(held);
    if (thinking_ && style_.colour && !style_.quiet) print("\x1b[0m");
  }
  print("\n");
}

void Answer::say(std::string_view piece) {
  if (!thinking_) text_ += piece;
  if (!thinking_ || !style_.quiet) print(piece);
}

void Answer::print(std::string_view piece) {
  printed_ += piece;
  if (style_.streams) write_output(piece);
}

void Answer::print_logprobs(const TokenEvent& event) const {
  const auto spelled = [&](int32_t id) {
    const auto token = tokenizer_ ? tokenizer_->token_of(id) : std::nullopt;
    return token ? fmt::format("{} {}", id, in_quotes(token->piece)) : fmt::format("{}", id);
  };
  std::string line =
      fmt::format("{:>5}  {}  {:.4f}", event.index, spelled(event.token), event.logprob);
  for (const TokenLogprob& top : event.top_logprobs)
    line += fmt::format("  | {}  {:.4f}", spelled(top.token), top.logprob);
  print_notice("{}\n", line);
}

std::string Answer::summary() const {
  const auto seconds = [](auto a, auto b) { return std::chrono::duration<double>(b - a).count(); };
  std::string rate;
  if (last_ > first_)
    rate = fmt::format(", {:.1f} tokens/s", double(tokens_.size() - 1) / seconds(first_, last_));
  std::string cached;
  if (end_.n_cached_tokens > 0) cached = fmt::format(" ({} cached)", end_.n_cached_tokens);
  return fmt::format("[{} prompt tokens{}, {} answer tokens, first after {:.2f} s{}; ended by {}]",
                     end_.n_prompt_tokens, cached, end_.n_answer_tokens,
                     tokens_.empty() ? 0.0 : seconds(started_, first_), rate, name(end_.reason));
}

}  // namespace bascule
