// A reply that keeps what it is given, in place of a connection.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "serve/http/reply.h"

namespace bascule {

class RecordingReply final : public HttpReply {
 public:
  void send(HttpResponse r) override {
    BASCULE_CHECK(!is_over && !is_stream);
    response = std::move(r);
    is_over = true;
  }
  void begin_events(std::vector<HttpHeader> headers) override {
    BASCULE_CHECK(!is_over && !is_stream);
    response.headers = std::move(headers);
    is_stream = true;
  }
  void write(std::string_view events) override {
    BASCULE_CHECK(is_stream && !is_over);
    response.body += events;
  }
  void end() override {
    BASCULE_CHECK(is_stream && !is_over);
    is_over = true;
  }
  void on_gone(std::function<void()> callback) override { gone = std::move(callback); }
  void note(std::string) override {}

  std::string header(std::string_view name) const {
    for (const HttpHeader& h : response.headers)
      if (h.name == name) return h.value;
    return "";
  }
  // What stands behind each "data: ".
  std::vector<std::string> events() const {
    std::vector<std::string> events;
    const std::string& body = response.body;
    for (size_t at = 0; (at = body.find("data: ", at)) != std::string::npos;) {
      const size_t end = body.find("\n\n", at);
      events.push_back(body.substr(at + 6, end - at - 6));
      at = end;
    }
    return events;
  }

  HttpResponse response;
  bool is_stream = false, is_over = false;
  std::function<void()> gone;
};

}  // namespace bascule
