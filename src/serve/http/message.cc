#include "serve/http/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace bascule {
namespace {

std::string_view reason_phrase(int status) {
  constexpr std::pair<int, std::string_view> kPhrases[] = {{200, "OK"},
                                                           {204, "No Content"},
                                                           {400, "Bad Request"},
                                                           {401, "Unauthorized"},
                                                           {404, "Not Found"},
                                                           {405, "Method Not Allowed"},
                                                           {408, "Request Timeout"},
                                                           {413, "Content Too Large"},
                                                           {429, "Too Many Requests"},
                                                           {431, "Request Header Fields Too Large"},
                                                           {500, "Internal Server Error"},
                                                           {503, "Service Unavailable"}};
  for (const auto& [code, phrase] : kPhrases)
    if (code == status) return phrase;
  return "Status";
}

std::string head(int status, const std::vector<HttpHeader>& headers, const HttpFraming& framing) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", status, reason_phrase(status));
  for (const HttpHeader& header : headers)
    text += fmt::format("{}: {}\r\n", header.name, header.value);
  text += framing.keeps_alive ? "connection: keep-alive\r\n" : "connection: close\r\n";
  return text;
}

}  // namespace

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  const auto same = [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  };
  return std::ranges::equal(a, b, same);
}

std::string_view HttpRequest::header(std::string_view name) const {
  for (const HttpHeader& header : headers)
    if (equals_ignoring_case(header.name, name)) return header.value;
  return {};
}

std::string whole_response(const HttpResponse& response, const HttpFraming& framing) {
  std::string text = head(response.status, response.headers, framing);
  if (!response.content_type.empty())
    text += fmt::format("content-type: {}\r\n", response.content_type);
  if (response.status != 204) text += fmt::format("content-length: {}\r\n", response.body.size());
  text += "\r\n";
  if (!framing.is_head && response.status != 204) text += response.body;
  return text;
}

std::string event_stream_head(const std::vector<HttpHeader>& headers, const HttpFraming& framing) {
  std::string text = head(200, headers, framing);
  // Proxies that buffer would hold every event back until the last (nginx reads the third line).
  text += "content-type: text/event-stream\r\ncache-control: no-cache\r\nx-accel-buffering: no\r\n";
  if (framing.is_chunked) text += "transfer-encoding: chunked\r\n";
  return text + "\r\n";
}

bool is_plain_word(std::string_view text) {
  const auto is_plain = [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c)) || c == '.' || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, is_plain);
}

}  // namespace bascule
