#include "serve/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/quote.h"
#include "serve/chat.h"
#include "serve/completions.h"
#include "serve/json_text.h"
#include "serve/status.h"

namespace bascule {

enum class RouteAccess { kOpen, kWithKey };
enum class RouteWork {
  kAtOnce,    // on the sockets' thread: answers whatever else goes on
  kOnWorker,  // reads a body
};

struct Api::Route {
  std::string_view method, path;
  RouteAccess access;
  RouteWork work;
  void (Api::*own)(Call);  // either this
  void (*dialect)(Call);   // or this, which is refused while draining
};

const Api::Route* Api::find_route(const HttpRequest& request, bool& knows_path) {
  using enum RouteAccess;
  using enum RouteWork;
  static constexpr Route kRoutes[] = {
      {"GET", "/health", kOpen, kAtOnce, &Api::health, nullptr},
      {"GET", "/ready", kOpen, kAtOnce, &Api::ready, nullptr},
      {"GET", "/version", kOpen, kAtOnce, &Api::version, nullptr},
      {"GET", "/metrics", kWithKey, kAtOnce, &Api::show_metrics, nullptr},
      {"GET", "/v1/plan", kWithKey, kAtOnce, &Api::plan, nullptr},
      {"GET", "/v1/models", kWithKey, kAtOnce, nullptr, list_models},
      {"POST", "/tokenize", kWithKey, kOnWorker, nullptr, tokenize},
      {"POST", "/detokenize", kWithKey, kOnWorker, nullptr, detokenize},
      {"POST", "/v1/chat/completions", kWithKey, kOnWorker, nullptr, chat},
      {"POST", "/v1/completions", kWithKey, kOnWorker, nullptr, complete},
  };
  const std::string_view method = request.method == "HEAD" ? "GET" : request.method;
  knows_path = false;
  for (const Route& route : kRoutes) {
    if (route.path != request.path) continue;
    knows_path = true;
    if (route.method == method) return &route;
  }
  return nullptr;
}

namespace {

// Takes the same time wherever the two differ, so that no key can be found out byte by byte.
bool is_same_secret(std::string_view a, std::string_view b) {
  unsigned difference = unsigned(a.size() != b.size());
  for (size_t i = 0; i < b.size(); ++i)
    difference |= unsigned(static_cast<unsigned char>(b[i])) ^
                  unsigned(static_cast<unsigned char>(a.empty() ? 0 : a[i % a.size()]));
  return difference == 0;
}

}  // namespace

Result<std::vector<ApiKey>> parse_api_keys(std::string_view text) {
  std::vector<ApiKey> keys;
  for (int n_line = 1; !text.empty(); ++n_line) {
    const std::string line(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    std::vector<std::string> words;
    for (size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != std::string::npos;) {
      const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
      words.push_back(line.substr(at, end - at));
      at = end;
    }
    if (words.empty() || words[0].starts_with('#')) continue;
    if (words.size() > 2)
      return invalid_argument(
          fmt::format("line {} has {} words: KEY or NAME KEY is wanted", n_line, words.size()));
    keys.push_back(
        {words.size() == 2 ? words[0] : fmt::format("key-{}", keys.size() + 1), words.back()});
  }
  if (keys.empty()) return invalid_argument("there is no key in it");
  return keys;
}

Api::Api(const ServedModel& model, ApiOptions options, Post post)
    : model_(model), options_(std::move(options)), post_(std::move(post)) {}

Status Api::warm_up() {
  class Listener final : public RequestListener {
   public:
    explicit Listener(std::atomic<bool>& is_warm) : is_warm_(is_warm) {}
    Verdict on_token(const TokenEvent&) override {
      is_warm_ = true;
      return Verdict::kStop;
    }
    void on_end(const EndEvent& event) override {
      if (event.reason == EndReason::kFailed) log_error("the first token: {}", event.message);
      // The model said that its answer is over: that is a token too.
      if (event.reason == EndReason::kStop) is_warm_ = true;
    }

   private:
    std::atomic<bool>& is_warm_;
  };
  RequestSpec spec;
  spec.prompt = {0};
  spec.max_tokens = 1;
  return status_of(model_.engine->submit(std::move(spec), std::make_unique<Listener>(is_warm_)));
}

void Api::handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
  Call call{.model = model_,
            .metrics = metrics_,
            .request = std::move(request),
            .reply = std::move(reply),
            .headers = {}};
  call.headers = common_headers(call.request);
  if (call.request.method == "OPTIONS")
    return call.reply->send({.status = 204, .content_type = "", .headers = call.headers});
  bool knows_path = false;
  const Route* route = find_route(call.request, knows_path);
  if (!route && knows_path)
    return call.fail(
        {.status = 405,
         .message = "this endpoint has other methods than " + in_quotes(call.request.method, 32)});
  if (!route)
    return call.fail(
        {.status = 404, .message = "there is no endpoint " + in_quotes(call.request.path, 100)});
  const ApiError why_not = objection(call.request, *route);
  if (why_not.status != 0) return call.fail(why_not);
  if (route->own) return (this->*route->own)(std::move(call));
  if (route->work == RouteWork::kAtOnce) return route->dialect(std::move(call));
  post_([dialect = route->dialect, call = std::move(call)]() mutable { dialect(std::move(call)); });
}

HttpResponse Api::refusal(std::string_view path, int status, const std::string& message) {
  metrics_.count_response(status);
  return error_response({.status = status, .message = message}, error_shape_of(path));
}

ApiError Api::objection(const HttpRequest& request, const Route& route) const {
  if (route.access == RouteAccess::kWithKey && !has_key(request))
    return {.status = 401,
            .message = "no key that this server knows: send \"Authorization: Bearer KEY\"",
            .code = "invalid_api_key"};
  if (route.dialect && is_draining_)
    return {.status = 503, .message = "the server is stopping, and begins nothing new"};
  return {.status = 0};
}

bool Api::has_key(const HttpRequest& request) const {
  constexpr std::string_view kBearer = "Bearer ";
  std::string_view sent = request.header("authorization");
  if (sent.starts_with(kBearer))
    sent.remove_prefix(kBearer.size());
  else
    sent = request.header("x-api-key");  // as Anthropic's clients send it
  bool is_known = options_.keys.empty();
  for (const ApiKey& key : options_.keys) is_known |= is_same_secret(sent, key.key);
  return is_known;
}

std::string Api::cors_origin(const HttpRequest& request) const {
  for (const std::string& origin : options_.cors_origins)
    if (origin == "*" || origin == request.header("origin")) return origin;
  return "";
}

std::vector<HttpHeader> Api::common_headers(const HttpRequest& request) const {
  std::vector<HttpHeader> headers = {{"x-request-id", request.id}};
  const std::string origin = cors_origin(request);
  if (origin.empty()) return headers;
  headers.push_back({"access-control-allow-origin", origin});
  headers.push_back({"access-control-expose-headers", "x-request-id, x-bascule-ignored"});
  if (origin != "*") headers.push_back({"vary", "origin"});
  if (request.method == "OPTIONS") {
    headers.push_back({"access-control-allow-methods", "GET, POST"});
    headers.push_back({"access-control-allow-headers",
                       "authorization, content-type, x-api-key, x-request-id, anthropic-version"});
    headers.push_back({"access-control-max-age", "3600"});
  }
  return headers;
}

// ---- what the server says of itself, on the thread of the sockets ----

void Api::health(Call call) { call.send(R"({"status":"ok"})"); }

// To be alive and to be able to answer are two questions.
void Api::ready(Call call) {
  if (is_ready()) return call.send(R"({"status":"ready"})");
  call.fail({.status = 503,
             .message = is_draining_ ? "the server is stopping, and begins nothing new"
                                     : "the model has not answered its first token yet"});
}

void Api::version(Call call) {
  call.send(fmt::format(R"({{"version":{}}})", json_quoted(model_.version)));
}

void Api::show_metrics(Call call) {
  call.send(metrics_.text(), "text/plain; version=0.0.4; charset=utf-8");
}

void Api::plan(Call call) { call.send(model_.plan_json); }

}  // namespace bascule
