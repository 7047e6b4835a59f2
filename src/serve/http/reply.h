// The answer to one request, given from any thread: whole, or as a stream of events. A client that
// reads slower than its answer grows is bounded in memory and then cut off; no writer ever waits.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/message.h"

namespace bascule {

class HttpReply {
 public:
  virtual ~HttpReply() = default;

  // Either this, once,
  virtual void send(HttpResponse response) = 0;
  // or these: the head, then any number of pieces, then the end. Pieces for a client that has gone
  // are dropped.
  virtual void begin_events(std::vector<HttpHeader> headers) = 0;
  virtual void write(std::string_view events) = 0;
  virtual void end() = 0;

  // Called once if the client goes, or is cut off, before the end; at once if it has gone already.
  // On a thread of the server's: must not block.
  virtual void on_gone(std::function<void()> callback) = 0;

  // What the access log shows of it: "prompt_tokens=5 answer_tokens=7".
  virtual void note(std::string text) = 0;
};

// A reply and the connection that carries it, with the bytes between the two.
class Exchange final : public HttpReply {
 public:
  // `wake` is called, on the writer's thread, when take() has something new.
  Exchange(const HttpFraming& framing, size_t max_buffered_bytes, std::function<void()> wake);

  void send(HttpResponse response) override;
  void begin_events(std::vector<HttpHeader> headers) override;
  void write(std::string_view events) override;
  void end() override;
  void on_gone(std::function<void()> callback) override;
  void note(std::string text) override;

  // The connection's side.
  struct Output {
    std::string bytes;
    bool has_ended = false;   // nothing comes after these bytes
    bool is_cut_off = false;  // the client reads too slowly: nothing more will be sent
  };
  Output take();
  void abandon();  // the client has gone
  bool is_cut_off() const;
  int status() const;  // 0 before an answer
  std::string noted() const;

 private:
  // Appends what is to be sent; the lock is held. True: the connection should be woken.
  bool append(std::string_view bytes);

  const HttpFraming framing_;
  const size_t max_buffered_bytes_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::string buffer_;  // the rest under mutex_
  std::string note_;
  std::function<void()> on_gone_;
  int status_ = 0;
  bool has_ended_ = false, is_gone_ = false, is_cut_off_ = false;
};

}  // namespace bascule
