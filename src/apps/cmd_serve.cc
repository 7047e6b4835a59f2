// `bascule serve`: a model behind HTTP, until a signal.
#include <chrono>
#include <thread>

#include "apps/commands.h"
#include "apps/interrupt.h"
#include "apps/served_engine.h"
#include "apps/terminal.h"
#include "base/log.h"
#include "base/quote.h"
#include "serve/api.h"

namespace bascule {
namespace {

using namespace std::chrono_literals;

constexpr size_t kMaxKeyFileBytes = 1 << 20;
// Parsing, tokens and templates: few, since the engine wants the processors.
constexpr int kWorkers = 2;

Result<ApiOptions> api_options(const Options& options) {
  ApiOptions result;
  for (const std::string& key : options.list("api-key")) {
    if (key.empty()) return invalid_argument("--api-key is empty, so that nobody could send it");
    result.keys.push_back({fmt::format("key-{}", result.keys.size() + 1), key});
  }
  if (options.has("api-key-file")) {
    const std::string path = options.text("api-key-file");
    BASCULE_TRY_ASSIGN(const std::string text,
                       read_file(path, kMaxKeyFileBytes).with_context("--api-key-file"));
    BASCULE_TRY_ASSIGN(const std::vector<ApiKey> keys,
                       parse_api_keys(text).with_context("--api-key-file " + path));
    result.keys.insert(result.keys.end(), keys.begin(), keys.end());
  }
  result.cors_origins = options.list("cors-origin");
  return result;
}

// The line that a person pastes to see it work.
std::string curl_line(const std::string& url, bool can_chat, bool needs_key) {
  return fmt::format("curl {}/v1/{} -H 'content-type: application/json'{} \\\n    -d '{}'", url,
                     can_chat ? "chat/completions" : "completions",
                     needs_key ? " -H 'authorization: Bearer KEY'" : "",
                     can_chat ? R"({"messages": [{"role": "user", "content": "What is 3 + 4?"}]})"
                              : R"({"prompt": "Once", "max_tokens": 20})");
}

std::string url_of(const std::string& host, uint16_t port) {
  if (host == "0.0.0.0" || host == "::") return fmt::format("http://127.0.0.1:{}", port);
  if (host.find(':') != std::string::npos) return fmt::format("http://[{}]:{}", host, port);
  return fmt::format("http://{}:{}", host, port);
}

// Running answers may end, for a while; then the engine says why they cannot.
void drain(Api& api, HttpServer& server, Engine& engine, std::chrono::seconds patience) {
  api.drain();
  server.close_after_answers();
  const auto deadline = std::chrono::steady_clock::now() + patience;
  print_notice("stopping: {} request(s) may go on for {} s; a second signal stops at once\n",
               server.n_in_progress(), patience.count());
  while (server.n_in_progress() > 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(20ms);
  engine.stop();
  // The last words of those that were cut leave in no time, or never.
  for (int i = 0; i < 100 && server.n_in_progress() > 0; ++i) std::this_thread::sleep_for(20ms);
  server.stop();
}

}  // namespace

Result<int> cmd_serve(const CommandLine& line) {
  const Interrupt interrupt(InterruptBy::kCtrlCOrTerm);
  const Options& options = line.options;
  if (line.positionals.size() > 1)
    return invalid_argument(
        fmt::format("{} comes after MODEL; one model is wanted", in_quotes(line.positionals[1])));
  // One line for each request, unless the level was chosen.
  if (options.value("log-level").origin == "built-in") set_log_level(LogLevel::kInfo);
  BASCULE_TRY_ASSIGN(ApiOptions api_settings, api_options(options));
  const bool needs_key = !api_settings.keys.empty();
  const HttpAddress address{.host = options.text("host"),
                            .port = uint16_t(options.integer("port"))};
  const HttpLimits limits{.max_body_bytes = size_t(options.bytes("max-body-bytes")),
                          .max_connections = options.integer("max-connections")};

  BASCULE_TRY_ASSIGN(const std::unique_ptr<HttpServer> server,
                     HttpServer::bind(address, limits, kWorkers));
  BASCULE_TRY_ASSIGN(
      const std::unique_ptr<ServedEngine> served,
      ServedEngine::open(line.positionals.empty() ? "" : line.positionals[0], options));
  Api api(served->served(), std::move(api_settings),
          [&server](std::function<void()> work) { server->post(std::move(work)); });
  served->engine().start();
  BASCULE_TRY(api.warm_up());
  BASCULE_TRY(server->serve(api));

  const std::string url = url_of(address.host, server->port());
  print_notice("{}\n", served->plan_text());
  print_notice("serving {} at {}\n{}\n", in_quotes(served->served().name), url,
               curl_line(url, served->served().glm != nullptr, needs_key));
  // A handler may only set a flag; looking at it costs less than a thread that waits for it.
  while (!Interrupt::requested()) std::this_thread::sleep_for(50ms);
  drain(api, *server, served->engine(), std::chrono::seconds(options.integer("drain-seconds")));
  return 0;
}

}  // namespace bascule
