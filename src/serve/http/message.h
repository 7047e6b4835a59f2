// A request and a response as values, without the sockets that carry them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bascule {

struct HttpHeader {
  std::string name, value;
};

struct HttpRequest {
  std::string method;  // "POST"
  std::string path;    // "/v1/models", without the query
  std::vector<HttpHeader> headers;
  std::string body;
  std::string id;    // the client's x-request-id where it is a plain word, else one of ours
  std::string peer;  // "127.0.0.1"

  // The value of the first header of that name, in any case; empty where there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<HttpHeader> headers;
  std::string body;
};

// How a reply is put on its connection, which its request decides.
struct HttpFraming {
  bool keeps_alive = true;
  bool is_chunked = true;  // events in chunks; else they end where the connection does (HTTP/1.0)
  bool is_head = false;    // the head alone, for HEAD
};

// The bytes of a response: all of it, or the head of a stream of events.
std::string whole_response(const HttpResponse& response, const HttpFraming& framing);
std::string event_stream_head(const std::vector<HttpHeader>& headers, const HttpFraming& framing);

// Letters, digits and "._-", at most 128: what may go back into a header and into the log.
bool is_plain_word(std::string_view text);

bool equals_ignoring_case(std::string_view a, std::string_view b);

}  // namespace bascule
