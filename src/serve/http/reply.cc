#include "serve/http/reply.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"

namespace bascule {

Exchange::Exchange(const HttpFraming& framing, size_t max_buffered_bytes,
                   std::function<void()> wake)
    : framing_(framing), max_buffered_bytes_(max_buffered_bytes), wake_(std::move(wake)) {}

void Exchange::send(HttpResponse response) {
  const std::string bytes = whole_response(response, framing_);
  std::function<void()> dropped;  // outside the lock: it may own whoever owns this
  {
    const std::scoped_lock lock(mutex_);
    BASCULE_CHECK(status_ == 0);
    status_ = response.status;
    has_ended_ = true;
    dropped = std::exchange(on_gone_, nullptr);
    // Not bounded: it is whole already, and grows no more.
    if (!is_gone_) buffer_ = bytes;
  }
  wake_();
}

void Exchange::begin_events(std::vector<HttpHeader> headers) {
  const std::string head = event_stream_head(headers, framing_);
  bool wakes = false;
  {
    const std::scoped_lock lock(mutex_);
    BASCULE_CHECK(status_ == 0);
    status_ = 200;
    wakes = append(head);
  }
  if (wakes) wake_();
}

void Exchange::write(std::string_view events) {
  if (events.empty() || framing_.is_head) return;
  bool wakes = false;
  {
    const std::scoped_lock lock(mutex_);
    BASCULE_CHECK(!has_ended_);
    wakes = framing_.is_chunked ? append(fmt::format("{:x}\r\n{}\r\n", events.size(), events))
                                : append(events);
  }
  if (wakes) wake_();
}

void Exchange::end() {
  std::function<void()> dropped;
  {
    const std::scoped_lock lock(mutex_);
    BASCULE_CHECK(!has_ended_);
    if (framing_.is_chunked && !framing_.is_head) append("0\r\n\r\n");
    has_ended_ = true;
    dropped = std::exchange(on_gone_, nullptr);
  }
  wake_();
}

bool Exchange::append(std::string_view bytes) {
  if (is_gone_ || is_cut_off_) return false;
  if (buffer_.size() + bytes.size() > max_buffered_bytes_) {
    is_cut_off_ = true;
    buffer_ = {};
    return true;
  }
  // Not empty: the connection was woken for what is there, and takes this with it.
  const bool wakes = buffer_.empty();
  buffer_ += bytes;
  return wakes;
}

void Exchange::on_gone(std::function<void()> callback) {
  {
    const std::scoped_lock lock(mutex_);
    if (has_ended_) return;
    if (!is_gone_) {
      on_gone_ = std::move(callback);
      return;
    }
  }
  callback();
}

void Exchange::note(std::string text) {
  const std::scoped_lock lock(mutex_);
  note_ = std::move(text);
}

Exchange::Output Exchange::take() {
  const std::scoped_lock lock(mutex_);
  return {std::exchange(buffer_, {}), has_ended_, is_cut_off_};
}

void Exchange::abandon() {
  std::function<void()> callback;
  {
    const std::scoped_lock lock(mutex_);
    is_gone_ = true;
    buffer_ = {};
    callback = std::exchange(on_gone_, nullptr);
  }
  if (callback) callback();
}

bool Exchange::is_cut_off() const {
  const std::scoped_lock lock(mutex_);
  return is_cut_off_;
}

int Exchange::status() const {
  const std::scoped_lock lock(mutex_);
  return status_;
}

std::string Exchange::noted() const {
  const std::scoped_lock lock(mutex_);
  return note_;
}

}  // namespace bascule
