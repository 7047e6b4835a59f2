#include "serve/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_api.h"

namespace bascule {
namespace {

using testing::HasSubstr;

TEST(Api, TellsAliveFromReady) {
  TestApi api;
  EXPECT_EQ(api.get("/health")->response.status, 200);
  EXPECT_EQ(api.get("/ready")->response.status, 200);
  api.api().drain();
  EXPECT_EQ(api.get("/health")->response.status, 200);
  EXPECT_EQ(api.get("/ready")->response.status, 503);
}

// A part of https://github.com/mzau/mlx-knife/issues/64: ready means that a token was generated.
TEST(Api, IsNotReadyBeforeTheFirstToken) {
  TestApi made;
  Api cold({.engine = &*made.engine(), .tokenizer = &made.tokenizer(), .name = "cold"}, {}, {});
  EXPECT_FALSE(cold.is_ready());
  ASSERT_TRUE(cold.warm_up().ok());
  EXPECT_FALSE(cold.is_ready());
  made.engine()->run_until_idle();
  EXPECT_TRUE(cold.is_ready());
}

// A part of https://github.com/sgl-project/sglang/pull/1838
TEST(Api, BeginsNothingNewWhileDraining) {
  TestApi api;
  const auto running = api.begin(
      {.method = "POST", .path = "/v1/completions", .body = R"({"prompt":[1,2],"max_tokens":5})"});
  api.api().drain();
  const auto late = api.post("/v1/completions", R"({"prompt":[1],"max_tokens":5})");
  EXPECT_EQ(late->response.status, 503);
  EXPECT_EQ(late->header("retry-after"), "5");
  EXPECT_EQ(running->response.status, 200);
  EXPECT_EQ(parsed(running->response.body)["usage"]["completion_tokens"], 5);
}

TEST(Api, KnowsItsEndpoints) {
  TestApi api;
  EXPECT_EQ(api.get("/v1/nothing")->response.status, 404);
  EXPECT_EQ(error_message(*api.get("/v1/nothing")), "there is no endpoint \"/v1/nothing\"");
  EXPECT_EQ(api.get("/v1/completions")->response.status, 405);
  EXPECT_EQ(parsed(api.get("/v1/models")->response.body)["data"][0]["id"], "fake");
  EXPECT_THAT(api.get("/metrics")->response.body, HasSubstr("bascule_answers_running 0\n"));
}

TEST(Api, WantsAKeyWhereThereAreSome) {
  TestApi api({.keys = {{"a", "first"}, {"b", "second"}}});
  EXPECT_EQ(api.get("/health")->response.status, 200);
  EXPECT_EQ(api.get("/v1/models")->response.status, 401);
  EXPECT_EQ(parsed(api.get("/v1/models")->response.body)["error"]["code"], "invalid_api_key");
  const auto with = [&](std::string name, std::string value) {
    return api.get("/v1/models", {{std::move(name), std::move(value)}})->response.status;
  };
  EXPECT_EQ(with("Authorization", "Bearer first"), 200);
  EXPECT_EQ(with("x-api-key", "second"), 200);
  for (const char* wrong :
       {"", "Bearer ", "Bearer firs", "Bearer firstfirst", "Bearer third", "first"})
    EXPECT_EQ(with("authorization", wrong), 401) << wrong;
}

TEST(Api, ReadsKeysFromLines) {
  const auto keys = parse_api_keys("# ours\n\nalice k1\r\nk2\n").value();
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0].name + keys[0].key, "alicek1");
  EXPECT_EQ(keys[1].name + keys[1].key, "key-2k2");
  EXPECT_EQ(parse_api_keys("a b c").status().message(),
            "line 1 has 3 words: KEY or NAME KEY is wanted");
  EXPECT_FALSE(parse_api_keys("# nothing\n").ok());
}

TEST(Api, LetsPagesOfItsOriginsAsk) {
  TestApi api({.cors_origins = {"https://a.example"}});
  const auto asked = [&](const char* origin) {
    return api.begin({.method = "OPTIONS", .path = "/v1/models", .headers = {{"Origin", origin}}});
  };
  EXPECT_EQ(asked("https://a.example")->response.status, 204);
  EXPECT_EQ(asked("https://a.example")->header("access-control-allow-origin"), "https://a.example");
  EXPECT_EQ(asked("https://b.example")->header("access-control-allow-origin"), "");
}

TEST(Api, RefusesBrokenBodies) {
  TestApi api;
  std::string deep = R"({"prompt":"x","metadata":)";
  // https://github.com/antirez/ds4/issues/43, https://github.com/kekzl/imp/issues/1607
  deep += std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
  const std::pair<std::string, const char*> bodies[] = {
      {deep, "nested deeper than 128 levels"},
      {"", "not valid JSON"},
      {"[]", "the request's body is a list of 0; an object is wanted"},
      {R"({"prompt":"a)", "not valid JSON"},
      {R"({"prompt":"a","prompt":"b"})", "the key \"prompt\" stands twice"},
      {"{\"prompt\":\"\xff\"}", "not valid JSON"},
      {R"({"prompt":"\ud800"})", "not valid JSON"},
  };
  for (const auto& [body, message] : bodies) {
    const auto reply = api.post("/v1/completions", body);
    EXPECT_EQ(reply->response.status, 400);
    EXPECT_THAT(error_message(*reply), HasSubstr(message));
    EXPECT_EQ(parsed(reply->response.body)["error"]["type"], "invalid_request_error");
  }
  EXPECT_EQ(api.post("/v1/completions", R"({"prompt":[1],"max_tokens":1})")->response.status, 200);
}

TEST(Api, CountsAndSpellsTokens) {
  TestApi api;
  const Json tokens = parsed(api.post("/tokenize", R"({"prompt":"Hello you"})")->response.body);
  EXPECT_EQ(tokens["count"], tokens["tokens"].size());
  EXPECT_EQ(tokens["max_model_len"], 128);
  const Json text =
      parsed(api.post("/detokenize", Json{{"tokens", tokens["tokens"]}}.dump())->response.body);
  EXPECT_EQ(text["prompt"], "Hello you");
  EXPECT_EQ(api.post("/detokenize", R"({"tokens":[-1]})")->response.status, 400);
}

}  // namespace
}  // namespace bascule
