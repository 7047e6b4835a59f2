// HTTP/1.1 over TCP: connections, limits and time-outs. One thread does all that touches sockets,
// as coroutines; it never waits for the engine nor for a worker, so /health answers whatever else
// is going on. What takes longer (parsing, tokens, templates) runs on workers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "serve/http/message.h"
#include "serve/http/reply.h"

namespace bascule {

struct HttpLimits {
  using Milliseconds = std::chrono::milliseconds;
  size_t max_header_bytes = size_t{32} << 10;
  size_t max_body_bytes = size_t{32} << 20;
  size_t max_bodies_bytes = size_t{1} << 30;    // of all requests that are here at one time
  size_t max_buffered_bytes = size_t{1} << 20;  // of a stream, written and not yet read
  int64_t max_connections = 16384;
  Milliseconds header_time{10'000};  // for a head to arrive, from its first byte
  Milliseconds body_time{60'000};    // and for a body
  Milliseconds idle_time{75'000};    // between two requests
  Milliseconds write_time{30'000};   // for the client to take what is sent
};

// What stands behind the server.
class HttpService {
 public:
  virtual ~HttpService() = default;
  // On the thread of the sockets: must not block. The reply may be given later, from any thread.
  virtual void handle(HttpRequest request, std::shared_ptr<HttpReply> reply) = 0;
  // The words for a request that never became one; `path` is empty where none was read.
  virtual HttpResponse refusal(std::string_view path, int status, const std::string& message) = 0;
};

struct HttpAddress {
  std::string host = "127.0.0.1";
  uint16_t port = 0;  // 0: any that is free
};

class HttpServer {
 public:
  // Takes the port, so that a wrong one is known before anything is loaded. Connections are refused
  // until serve().
  static Result<std::unique_ptr<HttpServer>> bind(const HttpAddress& address,
                                                  const HttpLimits& limits, int n_workers);
  // `service` must live until stop().
  Status serve(HttpService& service);
  ~HttpServer();  // stop()

  uint16_t port() const;

  // Runs `work` on a worker. From any thread.
  void post(std::function<void()> work);

  // From now on a connection is closed after its answer. New ones are still accepted, and the
  // service says what it thinks of them.
  void close_after_answers();

  int64_t n_in_progress() const;  // requests whose answer has not been sent whole
  int64_t n_connections() const;

  // Closes everything and ends the threads. Afterwards no callback comes.
  void stop();

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bascule
