#include "serve/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_api.h"

namespace bascule {
namespace {

using testing::HasSubstr;

constexpr const char* kPath = "/v1/chat/completions";

class Chat : public testing::Test {
 protected:
  Json ask(Json body) {
    const auto reply = api_.post(kPath, body.dump());
    EXPECT_EQ(reply->response.status, 200) << reply->response.body;
    return parsed(reply->response.body);
  }
  std::string refusal(const Json& body) {
    const auto reply = api_.post(kPath, body.dump());
    EXPECT_EQ(reply->response.status, 400) << reply->response.body;
    return error_message(*reply);
  }
  static Json conversation(Json content) {
    return {{"messages", {{{"role", "user"}, {"content", std::move(content)}}}},
            {"max_tokens", 12},
            {"temperature", 0}};
  }
  std::string expected(const std::string& said, bool thinking, int64_t n) {
    const Message message{Role::kUser, said};
    const auto prompt = GlmPrompt::of(api_.tokenizer())->encode({&message, 1}, thinking).value();
    return api_.tokenizer().decode(api_.engine().expected(prompt, n), SpecialTokens::kSkip);
  }

  TestApi api_;
};

TEST_F(Chat, AnswersAndKeepsReasoningApart) {
  Json body = conversation("Hello you");
  const Json thinking = ask(body)["choices"][0];
  EXPECT_EQ(thinking["message"]["reasoning_content"], expected("Hello you", true, 12));
  EXPECT_EQ(thinking["message"]["content"], "");
  EXPECT_EQ(thinking["finish_reason"], "length");
  for (const Json& off : {Json{{"enable_thinking", false}},
                          Json{{"chat_template_kwargs", {{"enable_thinking", false}}}},
                          Json{{"reasoning_effort", "none"}}}) {
    body = conversation("Hello you");
    body.update(off);
    const Json message = ask(body)["choices"][0]["message"];
    EXPECT_EQ(message["content"], expected("Hello you", false, 12));
    EXPECT_FALSE(message.contains("reasoning_content"));
  }
}

// https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/261,
// https://github.com/huggingface/text-generation-inference/pull/3021
TEST_F(Chat, TakesContentAsTextOrPartsAndRefusesImages) {
  const Json parts = {{{"type", "text"}, {"text", "Hello"}}, {{"type", "text"}, {"text", " you"}}};
  EXPECT_EQ(ask(conversation(parts))["choices"], ask(conversation("Hello you"))["choices"]);
  EXPECT_EQ(ask(conversation(nullptr))["choices"], ask(conversation(Json::array()))["choices"]);
  const Json image = {{{"type", "image_url"}, {"image_url", {{"url", "x"}}}}};
  const auto reply = api_.post(kPath, conversation(image).dump());
  EXPECT_EQ(reply->response.status, 400);
  EXPECT_THAT(error_message(*reply),
              HasSubstr("messages[0].content has a part of type \"image_url\""));
  EXPECT_EQ(parsed(reply->response.body)["error"]["param"], "messages");
}

// https://github.com/SeraphimSerapis/tool-eval-bench/pull/73
TEST_F(Chat, TakesBothNamesOfTheLimitAndTheNewerWins) {
  Json body = conversation("x");
  body["max_completion_tokens"] = 5;
  EXPECT_EQ(ask(body)["usage"]["completion_tokens"], 5);
  body["max_completion_tokens"] = nullptr;
  EXPECT_EQ(ask(body)["usage"]["completion_tokens"], 12);
}

TEST_F(Chat, StreamsWhatItSaysWhole) {
  for (const bool thinking : {true, false}) {
    Json body = conversation("Hello you");
    body.update({{"seed", 3}, {"temperature", 1}, {"n", 2}, {"enable_thinking", thinking}});
    const Json whole = ask(body);
    body["stream"] = true;
    const auto reply = api_.post(kPath, body.dump());
    std::vector<std::string> texts(2), reasonings(2);
    for (const std::string& event : reply->events()) {
      if (event == "[DONE]") continue;
      const Json chunk = parsed(event);
      EXPECT_EQ(chunk["object"], "chat.completion.chunk");
      EXPECT_FALSE(chunk.contains("usage"));
      const Json& choice = chunk["choices"][0];
      const size_t index = choice["index"];
      texts[index] += choice["delta"].value("content", "");
      reasonings[index] += choice["delta"].value("reasoning_content", "");
    }
    EXPECT_EQ(reply->events().back(), "[DONE]");
    for (size_t i = 0; i < 2; ++i) {
      const Json& message = whole["choices"][i]["message"];
      EXPECT_EQ(texts[i], message["content"]);
      EXPECT_EQ(reasonings[i], message.value("reasoning_content", ""));
    }
  }
}

// https://github.com/ollama/ollama/issues/13497
TEST_F(Chat, LogProbabilitiesCarryTheBytesOfTokens) {
  Json body = conversation("Hello you");
  body.update({{"logprobs", true}, {"top_logprobs", 3}, {"enable_thinking", false}});
  const Json choice = ask(body)["choices"][0];
  const Json& entries = choice["logprobs"]["content"];
  ASSERT_EQ(entries.size(), 12u);
  for (const Json& entry : entries) {
    EXPECT_LE(entry["logprob"].get<double>(), 0);
    ASSERT_EQ(entry["top_logprobs"].size(), 3u);
    EXPECT_EQ(entry["top_logprobs"][0]["logprob"], entry["logprob"]);  // greedy
    EXPECT_EQ(entry["top_logprobs"][0]["bytes"], entry["bytes"]);
  }
  body["logprobs"] = false;
  EXPECT_THAT(refusal(body), HasSubstr("set logprobs to true"));
}

TEST_F(Chat, RefusesWhatItCannotDo) {
  EXPECT_THAT(refusal({{"messages", Json::array()}}), HasSubstr("messages is a list of 0"));
  EXPECT_THAT(refusal({{"x", 1}}), HasSubstr("messages is missing"));
  EXPECT_THAT(refusal({{"messages", {{{"role", "oracle"}, {"content", "x"}}}}}),
              HasSubstr("messages[0]: role is \"oracle\""));
  Json body = conversation("x");
  body["tools"] = Json::array({Json::object()});
  EXPECT_THAT(refusal(body), HasSubstr("tools is not supported"));
}

}  // namespace
}  // namespace bascule
