// The one file that includes Boost: it takes half a minute to compile.
//
// Time-outs: each connection has at most one deadline, and one sweep looks at all of them. A timer
// for each read and write would cost more than the reads and writes of a stream of tokens.
//
// Wakes: a step of the engine writes to many streams. The first of them posts one task to the
// sockets' thread, which finds the others beside it in the outbox.
#include "serve/http/server.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <random>
#include <thread>
#include <unordered_set>
#include <utility>

#include "base/log.h"
#include "base/quote.h"

namespace bascule {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Parser = http::request_parser<http::string_body>;
using namespace asio::experimental::awaitable_operators;  // NOLINT(google-build-using-namespace)

// Errors come as values; nothing is thrown through our coroutines.
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);
constexpr auto kNever = Clock::time_point::max();

// Of the next request, read while this one is answered: to see the client go, one must read.
constexpr size_t kReadAheadBytes = 16 << 10;

// After a refusal, so long and so much of what the client still sends is read and dropped: closing
// at once would reset the connection, and the client would never see why.
constexpr auto kLingerTime = std::chrono::seconds(5);
constexpr size_t kLingerBytes = size_t{1} << 30;

constexpr int64_t kMaxRefusedConnections = 256;

std::string fresh_id() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return fmt::format("req-{:016x}", random());
}

// As many connections as the process may have need as many file descriptors.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const HttpLimits& limits, int n_workers) : limits_(limits), workers_(size_t(n_workers)) {}

  Status bind(const HttpAddress& address);
  Status serve(HttpService& service);
  void stop();

 private:
  friend class HttpServer;
  class Connection;

  Status status_of(const error_code& error) const;
  asio::awaitable<void> accept();
  asio::awaitable<void> sweep();
  void ready(std::weak_ptr<Connection> connection);
  void wake_ready();

  HttpLimits limits_;
  HttpService* service_ = nullptr;
  std::string where_;  // "127.0.0.1:8000"
  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  uint16_t port_ = 0;
  asio::steady_timer sweep_timer_{io_};
  std::unordered_set<Connection*> connections_;  // the sockets' thread's
  size_t bodies_bytes_ = 0;                      // and this
  std::atomic<bool> closes_after_answers_ = false, is_stopping_ = false;
  std::atomic<int64_t> n_in_progress_ = 0, n_connections_ = 0;

  std::mutex outbox_mutex_;
  std::vector<std::weak_ptr<Connection>> outbox_;  // with something to send

  asio::thread_pool workers_;
  std::thread thread_;
};

class HttpServer::Impl::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Impl& server, tcp::socket socket) : server_(server), socket_(std::move(socket)) {
    error_code error;
    const auto peer = socket_.remote_endpoint(error);
    if (!error) peer_ = peer.address().to_string();
    socket_.set_option(tcp::no_delay(true), error);  // a token must not wait for the next one
    server_.connections_.insert(this);
    ++server_.n_connections_;
  }
  ~Connection() {
    server_.connections_.erase(this);
    --server_.n_connections_;
  }

  asio::awaitable<void> run();
  asio::awaitable<void> refuse(std::string path, int status, std::string message);

  void wake();  // the exchange has something new
  void check_deadline(Clock::time_point now);
  void close() {
    error_code ignored;
    socket_.close(ignored);
    wake_timer_.cancel();
  }

 private:
  struct Refusal {
    int status = 0;  // 0: nobody is there to be told
    std::string message;
  };
  asio::awaitable<std::optional<Refusal>> receive(Parser& parser);
  Refusal why(const error_code& error) const;
  bool charge_body(size_t n_bytes);
  HttpRequest request_of(Parser& parser) const;
  asio::awaitable<bool> answer(HttpRequest request, HttpFraming framing);
  asio::awaitable<bool> write_out();
  asio::awaitable<void> watch();
  asio::awaitable<error_code> write(std::string bytes);
  void set_deadline(Clock::duration time) {
    deadline_ = Clock::now() + time;
    is_late_ = false;
  }

  Impl& server_;
  tcp::socket socket_;
  asio::steady_timer wake_timer_{server_.io_, kNever};
  boost::beast::flat_buffer buffer_;
  std::shared_ptr<Exchange> exchange_;
  std::string peer_;
  Clock::time_point deadline_ = kNever;
  bool is_late_ = false;
  size_t charged_bytes_ = 0;
};

// ---- a connection ----

asio::awaitable<void> HttpServer::Impl::Connection::run() {
  const auto self = shared_from_this();
  while (!server_.is_stopping_) {
    Parser parser;
    parser.header_limit(uint32_t(server_.limits_.max_header_bytes));
    parser.body_limit(server_.limits_.max_body_bytes);
    const std::optional<Refusal> refusal = co_await receive(parser);
    if (refusal) {
      if (refusal->status != 0)
        co_await refuse(request_of(parser).path, refusal->status, refusal->message);
      break;
    }
    const auto& message = parser.get();
    const HttpFraming framing{.keeps_alive = message.keep_alive() && !server_.closes_after_answers_,
                              .is_chunked = message.version() >= 11,
                              .is_head = message.method() == http::verb::head};
    const bool was_sent = co_await answer(request_of(parser), framing);
    charge_body(0);
    if (!was_sent || !framing.keeps_alive || !framing.is_chunked) break;
  }
  charge_body(0);
  close();
}

asio::awaitable<std::optional<HttpServer::Impl::Connection::Refusal>>
HttpServer::Impl::Connection::receive(Parser& parser) {
  if (buffer_.size() == 0) {
    set_deadline(server_.limits_.idle_time);
    const auto [error, n] = co_await socket_.async_read_some(buffer_.prepare(1024), kAsTuple);
    if (error) co_return Refusal{};
    buffer_.commit(n);
  }
  set_deadline(server_.limits_.header_time);
  const auto [error, n] = co_await http::async_read_header(socket_, buffer_, parser, kAsTuple);
  if (error) co_return why(error);
  if (equals_ignoring_case(std::string_view(parser.get()[http::field::expect]), "100-continue") &&
      co_await write("HTTP/1.1 100 Continue\r\n\r\n"))
    co_return Refusal{};
  set_deadline(server_.limits_.body_time);
  while (!parser.is_done()) {
    const auto [body_error, n_read] =
        co_await http::async_read_some(socket_, buffer_, parser, kAsTuple);
    if (body_error) co_return why(body_error);
    if (!charge_body(parser.get().body().size()))
      co_return Refusal{503, "the server holds as many bytes of requests as it may: try again"};
  }
  deadline_ = kNever;
  co_return std::nullopt;
}

HttpServer::Impl::Connection::Refusal HttpServer::Impl::Connection::why(
    const error_code& error) const {
  if (is_late_) return {408, "the request did not arrive whole in time"};
  if (error == http::error::header_limit)
    return {431, fmt::format("the request's head is longer than {} bytes",
                             server_.limits_.max_header_bytes)};
  if (error == http::error::body_limit)
    return {413, fmt::format("the request's body is longer than {} bytes",
                             server_.limits_.max_body_bytes)};
  if (error == http::error::end_of_stream || error == http::error::partial_message) return {};
  if (error.category() == make_error_code(http::error::bad_method).category())
    return {400, fmt::format("the request is no HTTP/1.1: {}", error.message())};
  return {};  // the socket's own: the client has gone
}

// Accounts for the body that this connection holds; false if all of them together are too much.
bool HttpServer::Impl::Connection::charge_body(size_t n_bytes) {
  server_.bodies_bytes_ += n_bytes - charged_bytes_;
  charged_bytes_ = n_bytes;
  return server_.bodies_bytes_ <= server_.limits_.max_bodies_bytes;
}

HttpRequest HttpServer::Impl::Connection::request_of(Parser& parser) const {
  auto& message = parser.get();
  HttpRequest request;
  request.method = std::string_view(message.method_string());
  const std::string_view target(message.target());
  request.path = target.substr(0, target.find('?'));
  for (const auto& field : message)
    request.headers.push_back({std::string(std::string_view(field.name_string())),
                               std::string(std::string_view(field.value()))});
  request.body = std::move(message.body());
  const std::string_view id = request.header("x-request-id");
  request.id = is_plain_word(id) ? std::string(id) : fresh_id();
  request.peer = peer_;
  return request;
}

// True: sent whole.
asio::awaitable<bool> HttpServer::Impl::Connection::answer(HttpRequest request,
                                                           HttpFraming framing) {
  const auto started = Clock::now();
  const std::string line =
      fmt::format("{} {} {} {}", request.id, peer_, request.method, in_quotes(request.path, 80));
  exchange_ = std::make_shared<Exchange>(
      framing, server_.limits_.max_buffered_bytes,
      [&server = server_, self = weak_from_this()] { server.ready(self); });
  ++server_.n_in_progress_;
  server_.service_->handle(std::move(request), exchange_);
  const auto first = co_await (write_out() || watch());
  const bool was_sent = first.index() == 0 && std::get<0>(first);
  if (!was_sent) exchange_->abandon();
  deadline_ = kNever;
  --server_.n_in_progress_;
  const std::chrono::duration<double, std::milli> ms = Clock::now() - started;
  const std::string note = exchange_->noted();
  log_info("{} {}{} {:.1f} ms{}{}", line, exchange_->status(),
           was_sent                  ? ""
           : exchange_->is_cut_off() ? " cut off: it read too slowly"
                                     : " client gone",
           ms.count(), note.empty() ? "" : " ", note);
  exchange_.reset();
  co_return was_sent;
}

asio::awaitable<bool> HttpServer::Impl::Connection::write_out() {
  co_await asio::this_coro::throw_if_cancelled(false);
  while (true) {
    Exchange::Output output = exchange_->take();
    if (output.is_cut_off) co_return false;
    if (!output.bytes.empty() && co_await write(std::move(output.bytes))) co_return false;
    if (output.has_ended) co_return true;
    if (!output.bytes.empty()) continue;
    wake_timer_.expires_at(kNever);
    co_await wake_timer_.async_wait(kAsTuple);
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none || server_.is_stopping_) co_return false;
  }
}

// Ends when the client has gone. What it sends meanwhile is the next request's.
asio::awaitable<void> HttpServer::Impl::Connection::watch() {
  co_await asio::this_coro::throw_if_cancelled(false);
  while (buffer_.size() < kReadAheadBytes) {
    const auto [error, n] = co_await socket_.async_read_some(buffer_.prepare(512), kAsTuple);
    if (error) co_return;
    buffer_.commit(n);
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) co_return;
  }
  asio::steady_timer never(server_.io_, kNever);
  co_await never.async_wait(kAsTuple);
}

asio::awaitable<error_code> HttpServer::Impl::Connection::write(std::string bytes) {
  set_deadline(server_.limits_.write_time);
  const auto [error, n] = co_await asio::async_write(socket_, asio::buffer(bytes), kAsTuple);
  deadline_ = kNever;
  co_return error;
}

asio::awaitable<void> HttpServer::Impl::Connection::refuse(std::string path, int status,
                                                           std::string message) {
  const auto self = shared_from_this();
  log_info("{} {} {} {}", peer_, in_quotes(path, 80), status, message);
  const HttpResponse response = server_.service_->refusal(path, status, message);
  if (co_await write(whole_response(response, {.keeps_alive = false}))) co_return;
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  set_deadline(kLingerTime);
  std::vector<char> dropped(64 << 10);
  for (size_t n_bytes = 0; n_bytes < kLingerBytes && !is_late_;) {
    const auto [error, n] = co_await socket_.async_read_some(asio::buffer(dropped), kAsTuple);
    if (error) break;
    n_bytes += n;
  }
  close();
}

void HttpServer::Impl::Connection::wake() {
  if (!exchange_) return;
  wake_timer_.cancel();
  error_code ignored;
  if (exchange_->is_cut_off()) socket_.cancel(ignored);  // a write that does not get on
}

void HttpServer::Impl::Connection::check_deadline(Clock::time_point now) {
  if (now < deadline_) return;
  is_late_ = true;
  deadline_ = kNever;
  error_code ignored;
  socket_.cancel(ignored);  // whatever waits wakes, and may still say why
}

// ---- the server ----

Status HttpServer::Impl::bind(const HttpAddress& address) {
  where_ = fmt::format("{}:{}", address.host, address.port);
  error_code error;
  const std::string host = address.host == "localhost" ? "127.0.0.1" : address.host;
  const auto ip = asio::ip::make_address(host, error);
  if (error)
    return invalid_argument(fmt::format(
        "--host {}: an IP address is wanted, such as 127.0.0.1, or 0.0.0.0 for all interfaces",
        in_quotes(address.host, 64)));
  const tcp::endpoint endpoint(ip, address.port);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) port_ = acceptor_.local_endpoint(error).port();
  return status_of(error);
}

Status HttpServer::Impl::serve(HttpService& service) {
  service_ = &service;
  error_code error;
  acceptor_.listen(4096, error);
  if (error) return status_of(error);
  asio::co_spawn(io_, accept(), asio::detached);
  asio::co_spawn(io_, sweep(), asio::detached);
  thread_ = std::thread([this] { io_.run(); });
  return {};
}

Status HttpServer::Impl::status_of(const error_code& error) const {
  if (!error) return {};
  if (error == asio::error::address_in_use)
    return unavailable(
        fmt::format("{} is in use by another program; another --port would do", where_));
  return internal(fmt::format("listening on {}: {}", where_, error.message()));
}

asio::awaitable<void> HttpServer::Impl::accept() {
  asio::steady_timer pause(io_);
  while (!is_stopping_) {
    auto [error, socket] = co_await acceptor_.async_accept(kAsTuple);
    if (is_stopping_) break;
    if (error) {  // out of file descriptors, mostly: some come back when connections close
      log_warning("accepting a connection: {}", error.message());
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(kAsTuple);
      continue;
    }
    // Those that are told so are connections too; past a few of them, nobody is told.
    if (n_connections_ >= limits_.max_connections + kMaxRefusedConnections) continue;
    const bool is_full = n_connections_ >= limits_.max_connections;
    const auto connection = std::make_shared<Connection>(*this, std::move(socket));
    if (!is_full) {
      asio::co_spawn(io_, connection->run(), asio::detached);
    } else {
      asio::co_spawn(io_,
                     connection->refuse("", 503,
                                        fmt::format("{} connections are open, and no more may be: "
                                                    "try again later",
                                                    limits_.max_connections)),
                     asio::detached);
    }
  }
}

asio::awaitable<void> HttpServer::Impl::sweep() {
  const HttpLimits::Milliseconds shortest =
      std::min({limits_.header_time, limits_.body_time, limits_.idle_time, limits_.write_time,
                HttpLimits::Milliseconds(4000)});
  while (!is_stopping_) {
    sweep_timer_.expires_after(shortest / 4);
    co_await sweep_timer_.async_wait(kAsTuple);
    const auto now = Clock::now();
    for (Connection* connection : connections_) connection->check_deadline(now);
  }
}

void HttpServer::Impl::ready(std::weak_ptr<Connection> connection) {
  const std::scoped_lock lock(outbox_mutex_);
  outbox_.push_back(std::move(connection));
  if (outbox_.size() == 1) asio::post(io_, [this] { wake_ready(); });
}

void HttpServer::Impl::wake_ready() {
  std::vector<std::weak_ptr<Connection>> ready;
  {
    const std::scoped_lock lock(outbox_mutex_);
    ready.swap(outbox_);
  }
  for (const auto& each : ready)
    if (const auto connection = each.lock()) connection->wake();
}

void HttpServer::Impl::stop() {
  if (!thread_.joinable()) return;
  is_stopping_ = true;
  asio::post(io_, [this] {
    error_code ignored;
    acceptor_.close(ignored);
    sweep_timer_.cancel();
    for (Connection* connection : connections_) connection->close();
  });
  thread_.join();  // when the last coroutine has ended
  workers_.join();
}

Result<std::unique_ptr<HttpServer>> HttpServer::bind(const HttpAddress& address,
                                                     const HttpLimits& limits, int n_workers) {
  raise_descriptor_limit();
  auto impl = std::make_unique<Impl>(limits, n_workers);
  BASCULE_TRY(impl->bind(address));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() { stop(); }

uint16_t HttpServer::port() const { return impl_->port_; }
void HttpServer::post(std::function<void()> work) { asio::post(impl_->workers_, std::move(work)); }
void HttpServer::close_after_answers() { impl_->closes_after_answers_ = true; }
Status HttpServer::serve(HttpService& service) { return impl_->serve(service); }
int64_t HttpServer::n_in_progress() const { return impl_->n_in_progress_; }
int64_t HttpServer::n_connections() const { return impl_->n_connections_; }
void HttpServer::stop() { impl_->stop(); }

}  // namespace bascule
