// Real sockets, hostile clients.
#include "serve/http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "support/socket_client.h"

namespace bascule {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using namespace std::chrono_literals;

// Echoes bodies; /never answers nothing, /flood writes events until its client has gone.
class Service final : public HttpService {
 public:
  void handle(HttpRequest request, std::shared_ptr<HttpReply> reply) override {
    if (request.path == "/never") {
      reply->on_gone([this] { ++n_gone; });
      const std::scoped_lock lock(mutex);
      kept.push_back(std::move(reply));
    } else if (request.path == "/flood") {
      reply->begin_events({});
      const auto gone = std::make_shared<std::atomic<bool>>(false);
      reply->on_gone([this, gone] { ++n_gone, *gone = true; });
      floods.emplace_back([reply, gone] {
        while (!*gone) reply->write("data: " + std::string(10'000, 'x') + "\n\n");
      });
    } else if (request.path == "/worker") {
      server->post([reply] { reply->send({.body = "from a worker"}); });
    } else {
      reply->send({.body = request.method + " " + request.path + " " + request.body});
    }
  }
  HttpResponse refusal(std::string_view path, int status, const std::string& message) override {
    return {.status = status, .body = std::string(path) + ": " + message};
  }
  ~Service() override {
    for (std::thread& flood : floods) flood.join();
  }

  HttpServer* server = nullptr;
  std::atomic<int> n_gone = 0;
  std::mutex mutex;
  std::vector<std::shared_ptr<HttpReply>> kept;
  std::vector<std::thread> floods;
};

class Server : public testing::Test {
 protected:
  void start(const HttpLimits& limits = {}) {
    server_ = HttpServer::bind({}, limits, 2).value();
    service_.server = server_.get();
    ASSERT_TRUE(server_->serve(service_).ok());
  }
  // Until it holds, or for ten seconds.
  template <typename Condition>
  static bool eventually(Condition condition) {
    for (int i = 0; i < 1000 && !condition(); ++i) std::this_thread::sleep_for(10ms);
    return condition();
  }
  std::string ask(const std::string& bytes) {
    SocketClient client(server_->port());
    client.send(bytes);
    return client.read_response();
  }
  void expect_alive() { EXPECT_THAT(ask("GET /alive HTTP/1.1\r\n\r\n"), HasSubstr("GET /alive ")); }

  Service service_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(Server, AnswersManyRequestsOnOneConnection) {
  start();
  SocketClient client(server_->port());
  for (int i = 0; i < 3; ++i) {
    client.send("POST /a?b=c HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello");
    EXPECT_THAT(client.read_response(), testing::EndsWith("POST /a hello"));
  }
  // Two at once: the second waits in the buffer while the first is answered.
  client.send("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.read_all(), testing::AllOf(HasSubstr("GET /1 "), HasSubstr("GET /2 ")));
  EXPECT_EQ(server_->n_in_progress(), 0);
}

TEST_F(Server, AnswersFromWorkers) {
  start();
  EXPECT_THAT(ask("GET /worker HTTP/1.1\r\n\r\n"), HasSubstr("from a worker"));
}

TEST_F(Server, TakesARequestByteByByte) {
  start();
  SocketClient client(server_->port());
  for (const char c : std::string("POST /a HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi"))
    client.send(std::string(1, c));
  EXPECT_THAT(client.read_response(), HasSubstr("POST /a hi"));
}

TEST_F(Server, RefusesWhatIsTooLargeBeforeReadingIt) {
  start({.max_header_bytes = 1000, .max_body_bytes = 1000});
  EXPECT_THAT(ask("POST /big HTTP/1.1\r\nContent-Length: 104857600\r\n\r\n"),
              testing::AllOf(StartsWith("HTTP/1.1 413 "),
                             HasSubstr("/big: the request's body is longer than 1000 bytes")));
  EXPECT_THAT(ask("POST /big HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" +
                  std::string(2000, 'x')),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nx: " + std::string(2000, 'x')), StartsWith("HTTP/1.1 431 "));
  expect_alive();
}

TEST_F(Server, AClientThatStillSendsReadsWhyItWasRefused) {
  start({.max_body_bytes = 1000});
  SocketClient client(server_->port());
  client.send("POST /big HTTP/1.1\r\nContent-Length: 20000000\r\n\r\n");
  const std::string megabyte(1 << 20, 'x');
  for (int i = 0; i < 19; ++i) ASSERT_TRUE(client.send(megabyte));
  EXPECT_THAT(client.read_response(), StartsWith("HTTP/1.1 413 "));
}

TEST_F(Server, RefusesAllBodiesTogetherPastTheirLimit) {
  start({.max_body_bytes = 100'000, .max_bodies_bytes = 150'000});
  SocketClient first(server_->port());
  first.send("POST /never HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'x'));
  ASSERT_TRUE(eventually([&] { return server_->n_in_progress() == 1; }));
  const std::string second = "POST /a HTTP/1.1\r\nContent-Length: 90000\r\n\r\n";
  EXPECT_THAT(ask(second + std::string(90'000, 'x')), StartsWith("HTTP/1.1 503 "));
  first.close_now();
  ASSERT_TRUE(eventually([&] { return server_->n_in_progress() == 0; }));
  EXPECT_THAT(ask(second + std::string(90'000, 'x')), StartsWith("HTTP/1.1 200 "));
}

TEST_F(Server, RefusesWhatIsNoHttp) {
  start();
  EXPECT_THAT(ask("hello\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask(std::string("\0\xff\r\n\r\n", 6)), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  expect_alive();
}

TEST_F(Server, ARequestThatStopsHalfwayIsTimedOut) {
  start({.header_time = 200ms, .body_time = 200ms});
  EXPECT_THAT(ask("GET / HT"), StartsWith("HTTP/1.1 408 "));
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhe"), StartsWith("HTTP/1.1 408 "));
}

TEST_F(Server, ASilentConnectionIsClosed) {
  start({.idle_time = 200ms});
  SocketClient client(server_->port());
  EXPECT_EQ(client.read_all(), "");
  EXPECT_TRUE(eventually([&] { return server_->n_connections() == 0; }));
}

// A part of https://github.com/ROCm/ATOM/pull/1562: also where nothing is streamed.
TEST_F(Server, NoticesThatAClientHasGone) {
  start();
  for (int i = 0; i < 10; ++i) {
    SocketClient client(server_->port());
    client.send("GET /never HTTP/1.1\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return server_->n_in_progress() == 1; }));
    client.close_now();
    ASSERT_TRUE(eventually([&] { return service_.n_gone == i + 1; }));
  }
  EXPECT_TRUE(eventually([&] { return server_->n_in_progress() == 0; }));
}

TEST_F(Server, CutsOffAReaderWhoDoesNotRead) {
  start({.max_buffered_bytes = 100'000});
  SocketClient client(server_->port());
  client.send("GET /flood HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return service_.n_gone == 1; }));
  EXPECT_TRUE(eventually([&] { return server_->n_in_progress() == 0; }));
}

TEST_F(Server, RefusesConnectionsPastItsLimit) {
  start({.max_connections = 2});
  SocketClient first(server_->port()), second(server_->port());
  ASSERT_TRUE(eventually([&] { return server_->n_connections() == 2; }));
  EXPECT_THAT(SocketClient(server_->port()).read_response(), StartsWith("HTTP/1.1 503 "));
  first.close_now();
  ASSERT_TRUE(eventually([&] { return server_->n_connections() == 1; }));
  expect_alive();
}

TEST_F(Server, ClosesConnectionsAfterTheirAnswersWhenToldSo) {
  start();
  server_->close_after_answers();
  SocketClient client(server_->port());
  client.send("GET /a HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.read_all(), HasSubstr("connection: close\r\n"));
}

TEST_F(Server, StopsWithRequestsInProgress) {
  start();
  SocketClient client(server_->port());
  client.send("GET /never HTTP/1.1\r\n\r\n" + std::string(100'000, 'x'));
  ASSERT_TRUE(eventually([&] { return server_->n_in_progress() == 1; }));
  server_->stop();
  EXPECT_EQ(server_->n_connections(), 0);
}

TEST_F(Server, APortInUseIsSaidSo) {
  start();
  const Status status = HttpServer::bind({.port = server_->port()}, {}, 1).status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("is in use by another program; another --port would do"));
  EXPECT_EQ(HttpServer::bind({.host = "nowhere"}, {}, 1).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace bascule
