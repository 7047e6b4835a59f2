// A client on a plain socket, for tests that send what no HTTP library would.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"

namespace bascule {

class SocketClient {
 public:
  explicit SocketClient(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    // Small, so that a reader who does not read is noticed soon.
    const int bytes = 4096;
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    BASCULE_CHECK(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  ~SocketClient() { close_now(); }
  SocketClient(const SocketClient&) = delete;
  SocketClient& operator=(const SocketClient&) = delete;

  // False where the other side has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(size_t(n));
    }
    return true;
  }

  // All bytes up to and including `end`, or as many as came before the other side closed.
  std::string read_until(std::string_view end) {
    std::string text;
    char byte = 0;
    while (!text.ends_with(end) && ::recv(fd_, &byte, 1, 0) == 1) text += byte;
    return text;
  }

  std::string read_all() {
    std::string text;
    char bytes[4096];
    for (ssize_t n = 0; (n = ::recv(fd_, bytes, sizeof bytes, 0)) > 0;)
      text.append(bytes, size_t(n));
    return text;
  }

  // A response with content-length: head and body.
  std::string read_response() {
    std::string text = read_until("\r\n\r\n");
    const size_t at = text.find("content-length: ");
    if (at == std::string::npos) return text;
    const size_t n_bytes = std::stoul(text.substr(at + 16));
    char byte = 0;
    for (size_t i = 0; i < n_bytes && ::recv(fd_, &byte, 1, 0) == 1; ++i) text += byte;
    return text;
  }

  void close_now() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

}  // namespace bascule
