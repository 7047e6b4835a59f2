// The service behind the sockets: the list of endpoints, who may use them, and whether there is
// service at all.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serve/call.h"
#include "serve/http/server.h"

namespace bascule {

struct ApiKey {
  std::string name;  // in the log
  std::string key;
};

// A line "NAME KEY" or "KEY" each; empty lines and those that begin with # are none.
Result<std::vector<ApiKey>> parse_api_keys(std::string_view text);

struct ApiOptions {
  std::vector<ApiKey> keys;               // none: everybody may
  std::vector<std::string> cors_origins;  // "*": any page
};

class Api final : public HttpService {
 public:
  // `post` runs what takes longer, on another thread than the sockets'.
  using Post = std::function<void(std::function<void()>)>;
  Api(const ServedModel& model, ApiOptions options, Post post);

  // Generates a token: when it is there, /ready says so.
  Status warm_up();
  // From now on nothing new is begun.
  void drain() { is_draining_ = true; }
  bool is_ready() const { return is_warm_ && !is_draining_; }

  void handle(HttpRequest request, std::shared_ptr<HttpReply> reply) override;
  HttpResponse refusal(std::string_view path, int status, const std::string& message) override;

 private:
  struct Route;
  static const Route* find_route(const HttpRequest& request, bool& knows_path);
  std::vector<HttpHeader> common_headers(const HttpRequest& request) const;
  std::string cors_origin(const HttpRequest& request) const;
  // Why this request is not served; status 0: it is.
  ApiError objection(const HttpRequest& request, const Route& route) const;
  bool has_key(const HttpRequest& request) const;

  void health(Call call);
  void ready(Call call);
  void version(Call call);
  void show_metrics(Call call);
  void plan(Call call);

  ServedModel model_;
  ApiOptions options_;
  Metrics metrics_;
  Post post_;
  std::atomic<bool> is_warm_ = false, is_draining_ = false;
};

}  // namespace bascule
