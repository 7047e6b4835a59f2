#include "serve/completions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "support/test_api.h"

namespace bascule {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kPath = "/v1/completions";

class Completions : public testing::Test {
 protected:
  Json ask(const std::string& body) {
    const auto reply = api_.post(kPath, body);
    EXPECT_EQ(reply->response.status, 200) << reply->response.body;
    return parsed(reply->response.body);
  }
  std::string refusal(const std::string& body) {
    const auto reply = api_.post(kPath, body);
    EXPECT_EQ(reply->response.status, 400) << reply->response.body;
    return error_message(*reply);
  }
  // The text that the fake model continues with.
  std::string expected(std::vector<int32_t> prompt, int64_t n) {
    return api_.tokenizer().decode(api_.engine().expected(std::move(prompt), n),
                                   SpecialTokens::kSkip);
  }
  // What a stream's chunks say together, choice by choice.
  static std::vector<std::string> joined(const RecordingReply& reply, size_t n_choices) {
    std::vector<std::string> texts(n_choices);
    for (const std::string& event : reply.events()) {
      if (event == "[DONE]") continue;
      const Json chunk = parsed(event);
      for (const Json& choice : chunk["choices"])
        texts[choice["index"].get<size_t>()] += choice["text"].get<std::string>();
    }
    return texts;
  }

  TestApi api_;
};

TEST_F(Completions, ContinuesIdsAndTexts) {
  const Json reply = ask(R"({"prompt":[5,6,7],"max_tokens":8,"temperature":0})");
  EXPECT_EQ(reply["choices"][0]["text"], expected({5, 6, 7}, 8));
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(reply["object"], "text_completion");
  EXPECT_EQ(reply["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(reply["usage"]["total_tokens"], 11);
  const auto ids = api_.tokenizer().encode("Hello you").value();
  EXPECT_EQ(ask(R"({"prompt":"Hello you","max_tokens":8,"temperature":0})")["choices"][0]["text"],
            expected(ids, 8));
}

TEST_F(Completions, AnswersListsPromptByPrompt) {
  const Json reply =
      ask(R"({"prompt":[[5,6],[7]],"n":2,"max_tokens":4,"temperature":0,"echo":true})");
  ASSERT_EQ(reply["choices"].size(), 4u);
  for (const int i : {0, 1})
    EXPECT_EQ(reply["choices"][i]["text"],
              api_.tokenizer().decode(std::vector<int32_t>{5, 6}) + expected({5, 6}, 4));
  EXPECT_EQ(reply["choices"][3]["index"], 3);
  EXPECT_EQ(reply["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(reply["usage"]["completion_tokens"], 16);
}

// https://github.com/ollama/ollama/pull/6784, https://github.com/Arthur-Ficial/apfel/issues/100
TEST_F(Completions, StreamsWhatItSaysWholeAndUsageOnlyIfAsked) {
  const std::string body = R"("prompt":[5,6,7],"max_tokens":20,"seed":7,"n":3)";
  const Json whole = ask("{" + body + "}");
  for (const bool with_usage : {false, true}) {
    const auto reply =
        api_.post(kPath, "{" + body + R"(,"stream":true,"stream_options":{"include_usage":)" +
                             (with_usage ? "true}}" : "false}}"));
    ASSERT_TRUE(reply->is_over);
    const auto texts = joined(*reply, 3);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(texts[i], whole["choices"][i]["text"]);
    const auto events = reply->events();
    EXPECT_EQ(events.back(), "[DONE]");
    const Json last = parsed(events[events.size() - 2]);
    EXPECT_EQ(last.contains("usage"), with_usage);
    if (!with_usage) continue;
    EXPECT_EQ(last["choices"], Json::array());
    EXPECT_EQ(last["usage"]["completion_tokens"], whole["usage"]["completion_tokens"]);
    EXPECT_EQ(last["usage"]["prompt_tokens"], 3);
    EXPECT_TRUE(parsed(events[0])["usage"].is_null());
  }
}

// https://github.com/vllm-project/vllm/issues/3574, https://github.com/mzau/mlx-knife/issues/68
TEST_F(Completions, StopsBeforeStopStringsHoweverTheyAreCut) {
  const std::string whole = expected({5, 6, 7}, 30);
  for (size_t at = 1; at + 3 < whole.size(); at += 5) {
    const std::string stop = whole.substr(at, 3);
    if (!is_utf8(stop)) continue;
    Json body = {{"prompt", {5, 6, 7}}, {"max_tokens", 30}, {"temperature", 0}, {"stop", {stop}}};
    const Json reply = ask(body.dump());
    EXPECT_EQ(reply["choices"][0]["text"], whole.substr(0, whole.find(stop)));
    EXPECT_EQ(reply["choices"][0]["finish_reason"], "stop");
    body["stream"] = true;
    EXPECT_EQ(joined(*api_.post(kPath, body.dump()), 1)[0], reply["choices"][0]["text"]);
  }
}

// https://github.com/sgl-project/sglang/issues/5377,
// https://github.com/vllm-project/vllm/issues/3333
TEST_F(Completions, SeedsRepeatAndChoicesDiffer) {
  const std::string seeded = R"({"prompt":[5],"max_tokens":12,"seed":7,"n":4})";
  const Json first = ask(seeded), second = ask(seeded);
  EXPECT_EQ(first["choices"], second["choices"]);
  std::set<std::string> texts;
  for (const Json& choice : first["choices"]) texts.insert(choice["text"].get<std::string>());
  EXPECT_EQ(texts.size(), 4u);
  texts.clear();
  for (int i = 0; i < 20; ++i)
    texts.insert(ask(R"({"prompt":[5],"max_tokens":12})")["choices"][0]["text"].get<std::string>());
  EXPECT_GT(texts.size(), 15u);
}

TEST_F(Completions, GivesLogProbabilities) {
  const Json reply = ask(R"({"prompt":[5],"max_tokens":5,"logprobs":3,"temperature":0})");
  const Json& logprobs = reply["choices"][0]["logprobs"];
  ASSERT_EQ(logprobs["tokens"].size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_LE(logprobs["token_logprobs"][i].get<double>(), 0);
    EXPECT_EQ(logprobs["top_logprobs"][i][logprobs["tokens"][i].get<std::string>()],
              logprobs["token_logprobs"][i]);
  }
  EXPECT_EQ(logprobs["text_offset"][0], 0);
  EXPECT_THAT(refusal(R"({"prompt":[5],"logprobs":1,"echo":true})"),
              StartsWith("echo with logprobs"));
}

TEST_F(Completions, TellsIgnoredFieldsAndRefusesWhatItCannotDo) {
  const auto reply =
      api_.post(kPath, R"({"prompt":[5],"max_tokens":1,"user":"u","surprise":1,"a b\r\n":2})");
  EXPECT_EQ(reply->response.status, 200);
  EXPECT_EQ(reply->header("x-bascule-ignored"), "user, surprise, (unprintable)");
  EXPECT_THAT(refusal(R"({"prompt":[5],"suffix":"x"})"), StartsWith("suffix is not supported: "));
  EXPECT_EQ(ask(R"({"prompt":[5],"max_tokens":1,"suffix":"","best_of":1,"stop":null,"seed":null})")
                ["choices"]
                    .size(),
            1u);
}

// https://github.com/voideditor/void/issues/128
TEST_F(Completions, EachRefusalNamesItsField) {
  const std::pair<const char*, const char*> fields[] = {
      {"\"max_tokens\":\"5\"", "max_tokens is the string \"5\"; a whole number is wanted"},
      {"\"n\":1000000", "n is 1000000; from 1 to 128 answers are given"},
      {"\"logprobs\":21", "logprobs is 21; from 0 to 20 can be given"},
      {"\"stop\":[1]", "stop[0] is the number 1; a string is wanted"},
      {"\"top_k\":99999999999", "top_k is 99999999999, which is too large"},
      {"\"logit_bias\":{\"x\":1}", "logit_bias: \"x\" is no token id"},
      {"\"stream_options\":{}", "stream_options is of streams"},
  };
  for (const auto& [field, message] : fields) {
    const auto reply = api_.post(kPath, std::string(R"({"prompt":[5],)") + field + "}");
    EXPECT_EQ(reply->response.status, 400);
    EXPECT_THAT(error_message(*reply), StartsWith(message));
    const std::string param = parsed(reply->response.body)["error"]["param"];
    EXPECT_THAT(field, StartsWith("\"" + param + "\""));
  }
  EXPECT_THAT(refusal("{}"), StartsWith("prompt is missing"));
  EXPECT_THAT(refusal(R"({"prompt":[5],"max_tokens":0})"), HasSubstr("max_tokens 0: 1 at least"));
  std::string stops = R"({"prompt":[5],"stop":["a")";
  for (int i = 1; i < 1'000'000; ++i) stops += ",\"b\"";
  EXPECT_EQ(refusal(stops + "]}"), "stop is a list of 1000000: at most 1024 are taken");
}

TEST_F(Completions, ATooLongPromptIsToldBothLengths) {
  const std::string message =
      refusal(R"({"max_tokens":10,"prompt":)" + Json(std::vector<int>(125, 5)).dump() + "}");
  EXPECT_THAT(message, testing::AllOf(HasSubstr("a prompt of 125 tokens and an answer of 10"),
                                      HasSubstr("128 tokens here")));
}

TEST_F(Completions, AnotherModelIsNotFound) {
  const auto reply = api_.post(kPath, R"({"prompt":[5],"model":"gpt-5"})");
  EXPECT_EQ(reply->response.status, 404);
  EXPECT_EQ(parsed(reply->response.body)["error"]["param"], "model");
}

// https://github.com/jundot/omlx/issues/3013, and n > 1 of https://github.com/ROCm/ATOM/pull/1562
TEST_F(Completions, AClientThatGoesFreesAllItsAnswers) {
  for (const char* stream : {"true", "false"}) {
    const auto reply = api_.begin(
        {.method = "POST",
         .path = kPath,
         .body = std::string(R"({"prompt":[5],"max_tokens":100,"n":3,"stream":)") + stream + "}"});
    for (int i = 0; i < 3; ++i) api_.engine()->step();
    EXPECT_EQ(api_.engine()->counts().running, 3);
    ASSERT_TRUE(reply->gone);
    reply->gone();
    EXPECT_FALSE(api_.engine()->step());  // nothing is left, and every page was accounted for
  }
}

TEST(CompletionsQueue, AFullOneIsTooManyRequests) {
  TestApi api({}, {.max_queued = 2});
  const std::string body = R"({"prompt":[5],"max_tokens":1,"n":3})";
  const auto reply = api.post(kPath, body);
  EXPECT_EQ(reply->response.status, 429);
  EXPECT_EQ(reply->header("retry-after"), "1");
  EXPECT_EQ(parsed(reply->response.body)["error"]["type"], "rate_limit_error");
}

}  // namespace
}  // namespace bascule
