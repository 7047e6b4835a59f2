#include "engine/engine.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "support/test_engine.h"

namespace bascule {
namespace {

using Verdict = RequestListener::Verdict;

std::vector<int32_t> prompt_of(int64_t n, int32_t first = 1) {
  std::vector<int32_t> prompt(n);
  for (int64_t i = 0; i < n; ++i) prompt[i] = int32_t((first + i * 7) % 97);
  return prompt;
}

TEST(Engine, AnswersARequest) {
  TestEngine engine({});
  const Answer& a = engine.ask({.prompt = {5, 6, 7}, .max_tokens = 12, .sampling = greedy()});
  engine->run_until_idle();
  EXPECT_EQ(a.tokens, engine.expected({5, 6, 7}, 12));
  ASSERT_TRUE(a.end);
  EXPECT_EQ(a.end->reason, EndReason::kLength);
  EXPECT_EQ(a.end->n_prompt_tokens, 3);
  EXPECT_EQ(a.end->n_answer_tokens, 12);
  EXPECT_FALSE(engine->step());
}

TEST(Engine, GivesTheSameAnswerWhateverTheChunks) {
  for (const int64_t budget : {1, 2, 7, 50, 200}) {
    TestEngine engine({.max_batch_tokens = budget, .max_requests = 1});
    const Answer& a = engine.ask({.prompt = prompt_of(50), .max_tokens = 9, .sampling = greedy()});
    engine->run_until_idle();
    EXPECT_EQ(a.tokens, engine.expected(prompt_of(50), 9)) << budget;
  }
}

TEST(Engine, RunsManyRequestsTogether) {
  TestEngine engine({.n_pages = 400, .max_requests = 8});
  std::vector<std::pair<std::vector<int32_t>, Answer*>> asked;
  for (int i = 0; i < 20; ++i) {
    const auto prompt = prompt_of(1 + i * 5 % 40, i);
    asked.emplace_back(prompt,
                       &engine.ask({.prompt = prompt, .max_tokens = 3 + i, .sampling = greedy()}));
  }
  engine->run_until_idle();
  for (const auto& [prompt, answer] : asked)
    EXPECT_EQ(answer->tokens, engine.expected(prompt, answer->end->n_answer_tokens));
  EXPECT_EQ(engine->counts().preemptions, 0);
}

TEST(Engine, ALongPromptDoesNotStopRunningAnswers) {
  TestEngine engine({.n_pages = 200, .max_context = 400, .max_batch_tokens = 8});
  const Answer& running = engine.ask({.prompt = {1}, .max_tokens = 60, .sampling = greedy()});
  engine->step();
  const Answer& late =
      engine.ask({.prompt = prompt_of(300), .max_tokens = 2, .sampling = greedy()});
  size_t n_steps = 1;
  for (; late.tokens.empty(); ++n_steps) {
    ASSERT_TRUE(engine->step());
    EXPECT_EQ(running.tokens.size(), n_steps + 1);
  }
  EXPECT_EQ(n_steps - 1, 43u);  // 300 tokens in pieces of 7 beside the running answer
  engine->run_until_idle();
  EXPECT_EQ(late.tokens, engine.expected(prompt_of(300), 2));
}

TEST(Engine, StartsRequestsInTheOrderTheyCame) {
  TestEngine engine({.max_batch_tokens = 4, .max_requests = 2});
  std::vector<int> order;
  for (int i = 0; i < 6; ++i)
    engine.ask({.prompt = prompt_of(6, i), .max_tokens = 2, .sampling = greedy()},
               [&order, i](const TokenEvent& e) {
                 if (e.index == 0) order.push_back(i);
                 return Verdict::kGoOn;
               });
  engine->run_until_idle();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST(Engine, EndsAtEndTokensUnlessTheyAreIgnored) {
  const std::vector<int32_t> prompt = {3, 1, 4};
  const auto answer = FakeModel::answer(prompt, 20, 97);
  TestEngine engine({.end_tokens = {answer[5]}});
  const auto ask = [&](RequestSpec spec) -> Answer& {
    spec.prompt = prompt, spec.max_tokens = 20, spec.sampling = greedy();
    return engine.ask(std::move(spec));
  };
  const Answer& ended = ask({});
  const Answer& ignoring = ask({.ignore_eos = true});
  const Answer& stopping = ask({.stop_tokens = {answer[2]}});
  engine->run_until_idle();
  EXPECT_EQ(ended.tokens, std::vector(answer.begin(), answer.begin() + 5));
  EXPECT_EQ(ended.end->reason, EndReason::kStop);
  EXPECT_EQ(ended.end->stop_token, answer[5]);
  EXPECT_EQ(ended.end->n_answer_tokens, 6);
  // A part of https://github.com/antirez/ds4/issues/938: exactly max_tokens, end tokens or not.
  EXPECT_EQ(ignoring.tokens, answer);
  EXPECT_EQ(ignoring.end->reason, EndReason::kLength);
  EXPECT_EQ(stopping.tokens, std::vector(answer.begin(), answer.begin() + 2));
  EXPECT_EQ(stopping.end->stop_token, answer[2]);
}

TEST(Engine, DrawsNoEndTokenBeforeMinTokens) {
  const std::vector<int32_t> prompt = {3, 1, 4};
  const int32_t first = FakeModel::answer(prompt, 1, 97)[0];
  std::vector<int32_t> most(97);
  std::iota(most.begin(), most.end(), 0);
  std::erase(most, 50);  // one token that ends nothing
  TestEngine engine({.end_tokens = {first}});
  const Answer& short_answer =
      engine.ask({.prompt = prompt, .max_tokens = 20, .sampling = greedy()});
  const Answer& long_answer = engine.ask({.prompt = prompt,
                                          .max_tokens = 20,
                                          .min_tokens = 7,
                                          .stop_tokens = most,
                                          .sampling = greedy()});
  engine->run_until_idle();
  EXPECT_TRUE(short_answer.tokens.empty());
  EXPECT_EQ(long_answer.tokens, std::vector<int32_t>(7, 50));
  EXPECT_EQ(long_answer.end->reason, EndReason::kStop);
}

TEST(Engine, StopsWhenTheListenerSaysSo) {
  TestEngine engine({});
  const Answer& a = engine.ask(
      {.prompt = {9}, .max_tokens = 20, .sampling = greedy()},
      [](const TokenEvent& e) { return e.index == 3 ? Verdict::kStop : Verdict::kGoOn; });
  engine->run_until_idle();
  EXPECT_EQ(a.tokens, engine.expected({9}, 4));
  EXPECT_EQ(a.end->reason, EndReason::kStop);
  EXPECT_EQ(a.end->stop_token, std::nullopt);
}

TEST(Engine, FillsTheContextWhereNoLengthIsAsked) {
  TestEngine engine({.max_context = 20});
  const Answer& a = engine.ask({.prompt = prompt_of(5), .sampling = greedy()});
  engine->run_until_idle();
  EXPECT_EQ(a.tokens, engine.expected(prompt_of(5), 15));
  EXPECT_EQ(a.end->reason, EndReason::kLength);
}

TEST(Engine, ANaNLogitEndsTheRequestAndNoOther) {
  const auto answer = FakeModel::answer({8, 8}, 10, 97);
  TestEngine engine({.model = {.nan_token = answer[3]}});
  const Answer& broken = engine.ask({.prompt = {8, 8}, .max_tokens = 10, .sampling = greedy()});
  const Answer& other = engine.ask({.prompt = {1, 2}, .max_tokens = 2, .sampling = greedy()});
  engine->run_until_idle();
  EXPECT_EQ(broken.tokens, std::vector(answer.begin(), answer.begin() + 4));
  EXPECT_EQ(broken.end->reason, EndReason::kFailed);
  EXPECT_EQ(broken.end->message, "the model gave a logit that is not a number (NaN or +inf)");
  EXPECT_EQ(other.end->reason, EndReason::kLength);
}

// https://github.com/vllm-project/vllm/issues/3333 and the threads beside it.
TEST(Engine, SeededAnswersDependOnNoNeighbour) {
  const RequestSpec seeded{.prompt = {2, 3}, .max_tokens = 16, .sampling = {.seed = 7}};
  TestEngine alone({}), crowded({.n_pages = 400, .max_batch_tokens = 17, .max_requests = 17});
  const Answer& first = alone.ask(seeded);
  alone->run_until_idle();
  for (int i = 0; i < 8; ++i) crowded.ask({.prompt = prompt_of(3 + i, i), .max_tokens = 9 + i});
  const Answer& second = crowded.ask(seeded);
  for (int i = 0; i < 8; ++i) crowded.ask({.prompt = {2, 3}, .max_tokens = 20});
  crowded->run_until_idle();
  EXPECT_EQ(first.tokens, second.tokens);
}

TEST(Engine, UnseededAnswersDifferAndChoicesOfASeedAreRepeatable) {
  TestEngine engine({.n_pages = 400});
  std::set<std::vector<int32_t>> distinct;
  std::vector<const Answer*> unseeded;
  for (int i = 0; i < 20; ++i) unseeded.push_back(&engine.ask({.prompt = {1}, .max_tokens = 8}));
  std::vector<const Answer*> choices;
  for (int i = 0; i < 8; ++i)
    choices.push_back(
        &engine.ask({.prompt = {1}, .max_tokens = 8, .sampling = {.seed = 3, .choice = i % 4}}));
  engine->run_until_idle();
  for (const Answer* a : unseeded) distinct.insert(a->tokens);
  EXPECT_GT(distinct.size(), 15u);
  distinct.clear();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(choices[i]->tokens, choices[i + 4]->tokens);
    distinct.insert(choices[i]->tokens);
  }
  EXPECT_EQ(distinct.size(), 4u);
}

TEST(Engine, CancelsInEveryState) {
  TestEngine engine({.max_batch_tokens = 4, .max_requests = 2});
  const Answer& decoding = engine.ask({.prompt = {1, 2}, .max_tokens = 50, .sampling = greedy()});
  engine->step();
  const Answer& prefilling = engine.ask({.prompt = prompt_of(40), .max_tokens = 9});
  const Answer& waiting = engine.ask({.prompt = {5}, .max_tokens = 9});
  const Answer& unseen = engine.ask({.prompt = {6}, .max_tokens = 9});
  engine->cancel(unseen.id);  // before the engine has seen it
  engine->step();
  EXPECT_EQ(engine->counts().running, 2);
  EXPECT_EQ(engine->counts().waiting, 1);
  for (const Answer* a : {&decoding, &prefilling, &waiting}) {
    EXPECT_FALSE(a->end);
    engine->cancel(a->id);
  }
  EXPECT_FALSE(engine->step());
  for (const Answer* a : {&decoding, &prefilling, &waiting, &unseen}) {
    EXPECT_EQ(a->n_ends, 1);
    EXPECT_EQ(a->end->reason, EndReason::kCancelled);
    engine->cancel(a->id);  // has ended: nothing
  }
  engine->cancel(12345);
  EXPECT_FALSE(engine->step());
  EXPECT_EQ(engine->counts().held_pages, 0);
  EXPECT_EQ(decoding.tokens, engine.expected({1, 2}, 2));
}

TEST(Engine, AListenerMayCancelAndSubmit) {
  TestEngine engine({});
  Answer* second = nullptr;
  Answer& first =
      engine.ask({.prompt = {4}, .max_tokens = 40, .sampling = greedy()}, [&](const TokenEvent& e) {
        if (e.index == 2) {
          engine->cancel(e.request);
          second = &engine.ask({.prompt = {5}, .max_tokens = 3, .sampling = greedy()});
        }
        return Verdict::kGoOn;
      });
  engine->run_until_idle();
  EXPECT_EQ(first.end->reason, EndReason::kCancelled);
  EXPECT_EQ(first.tokens.size(), 3u);
  EXPECT_EQ(second->tokens, engine.expected({5}, 3));
}

TEST(Engine, PreemptedAnswersAreTheSameAsUninterruptedOnes) {
  TestEngine engine({.n_pages = 12});  // 48 tokens; four answers want 4 * 40
  std::vector<const Answer*> answers;
  for (int i = 0; i < 4; ++i)
    answers.push_back(
        &engine.ask({.prompt = prompt_of(8, i), .max_tokens = 32, .sampling = {.seed = 5}}));
  engine->run_until_idle();
  EXPECT_GT(engine->counts().preemptions, 0);
  int64_t preemptions = 0;
  for (int i = 0; i < 4; ++i) {
    TestEngine roomy({});
    const Answer& alone =
        roomy.ask({.prompt = prompt_of(8, i), .max_tokens = 32, .sampling = {.seed = 5}});
    roomy->run_until_idle();
    EXPECT_EQ(answers[i]->tokens, alone.tokens);
    preemptions += answers[i]->end->n_preemptions;
  }
  EXPECT_EQ(answers[0]->end->n_preemptions, 0);  // the oldest never gives way
  EXPECT_EQ(preemptions, engine->counts().preemptions);
}

// https://github.com/inference-sim/inference-sim/issues/297 and 963: a pool of 64 pages, requests
// of 10, 40 and 65.
TEST(Engine, RefusesWhatCanNeverFitAndFinishesTheRest) {
  TestEngine engine({.n_pages = 64, .max_context = 4096, .max_batch_tokens = 32});
  const auto spec = [](int64_t n_pages) {
    return RequestSpec{
        .prompt = prompt_of(n_pages * 4 - 20), .max_tokens = 20, .sampling = greedy()};
  };
  const auto refused = engine->submit(spec(65), nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kOutOfRange);
  EXPECT_EQ(refused.status().message(),
            "a prompt of 240 tokens and an answer of 20 do not fit: prompt and answer together may "
            "have 256 tokens here");
  std::vector<const Answer*> answers;
  for (const int64_t n_pages : {40, 10, 64, 40, 10, 10, 40})
    answers.push_back(&engine.ask(spec(n_pages)));
  int64_t n_steps = 0;
  while (engine->step()) ASSERT_LT(++n_steps, 400);
  for (const Answer* a : answers) EXPECT_EQ(a->tokens.size(), 20u);
  EXPECT_LE(engine->counts().preemptions, 7);
}

TEST(Engine, RefusesBadRequestsWithTheirReason) {
  TestEngine engine({.n_pages = 100, .max_context = 100});
  const auto message = [&](RequestSpec spec) {
    const auto result = engine->submit(std::move(spec), nullptr);
    return result.ok() ? "" : result.status().message();
  };
  EXPECT_EQ(message({}), "the prompt is empty: it needs a token at least");
  EXPECT_EQ(message({.prompt = {1, 97}}), "token 1 of the prompt is 97: ids are from 0 to 96");
  EXPECT_EQ(message({.prompt = {-1}}), "token 0 of the prompt is -1: ids are from 0 to 96");
  EXPECT_EQ(message({.prompt = {1}, .stop_tokens = {99}}), "stop token 99: ids are from 0 to 96");
  EXPECT_EQ(message({.prompt = {1}, .max_tokens = 0}), "max_tokens 0: 1 at least");
  EXPECT_EQ(message({.prompt = {1}, .max_tokens = 4, .min_tokens = 5}),
            "min_tokens 5 is more than max_tokens 4");
  EXPECT_EQ(message({.prompt = {1}, .min_tokens = -1}), "min_tokens -1: 0 or more");
  EXPECT_EQ(message({.prompt = {1}, .sampling = {.temperature = -2}}).substr(0, 14),
            "temperature -2");
  EXPECT_EQ(message({.prompt = prompt_of(100)}),
            "a prompt of 100 tokens and an answer of 1 do not fit: prompt and answer together may "
            "have 100 tokens here");
  EXPECT_EQ(message({.prompt = {1}, .max_tokens = std::numeric_limits<int64_t>::max()}),
            "a prompt of 1 tokens and an answer of 9223372036854775807 do not fit: prompt and "
            "answer together may have 100 tokens here");
  EXPECT_EQ(message({.prompt = prompt_of(99), .max_tokens = 1}), "");
  engine->run_until_idle();
}

// Blocks shared before the step that fills them: https://github.com/vllm-project/vllm/pull/37152.
// Here a page is offered after that step, and a read of an unwritten one would fail (poison).
TEST(Engine, EqualPromptsThatArriveTogetherAreAnsweredAlike) {
  TestEngine engine({.n_pages = 2000, .max_batch_tokens = 64, .max_requests = 64});
  std::vector<Answer*> answers;
  for (int i = 0; i < 64; ++i)
    answers.push_back(
        &engine.ask({.prompt = prompt_of(90), .max_tokens = 5, .sampling = greedy()}));
  engine->run_until_idle();
  for (const Answer* a : answers) EXPECT_EQ(a->tokens, engine.expected(prompt_of(90), 5));
  EXPECT_GT(engine->counts().rows_found, 50 * 89);  // later ones need a token each
}

// https://github.com/vllm-project/vllm/issues/16016 and
// https://github.com/vllm-project/vllm/pull/17045: who may see that a prompt is cached. Tokens
// themselves are compared, so that no two prompts can collide
// (https://github.com/openvinotoolkit/openvino.genai/issues/3722).
TEST(Engine, SharesRowsOnlyUnderTheSameSalt) {
  TestEngine engine({});
  const auto cached = [&](const std::string& salt) {
    const Answer& a = engine.ask(
        {.prompt = prompt_of(30), .max_tokens = 2, .sampling = greedy(), .cache_salt = salt});
    engine->run_until_idle();
    EXPECT_EQ(a.tokens, engine.expected(prompt_of(30), 2));
    return a.end->n_cached_tokens;
  };
  EXPECT_EQ(cached("A"), 0);
  EXPECT_EQ(cached("A"), 29);
  EXPECT_EQ(cached("B"), 0);
  EXPECT_EQ(cached(""), 0);
  EXPECT_EQ(cached(""), 29);
}

TEST(Engine, TheNextTurnOfAConversationFindsAllOfTheLast) {
  TestEngine engine({});
  const Answer& first =
      engine.ask({.prompt = prompt_of(21), .max_tokens = 9, .sampling = greedy()});
  engine->run_until_idle();
  std::vector<int32_t> next = prompt_of(21);
  next.insert(next.end(), first.tokens.begin(), first.tokens.end());
  next.insert(next.end(), {4, 5, 6});
  const Answer& second = engine.ask({.prompt = next, .max_tokens = 9, .sampling = greedy()});
  engine->run_until_idle();
  EXPECT_EQ(second.end->n_cached_tokens, 29);  // the last token of an answer is never run
  EXPECT_EQ(second.tokens, engine.expected(next, 9));
}

// Rows that a preempted request finds again are no prefix hits.
TEST(Engine, CountsAsCachedOnlyWhatWasThereAtTheStart) {
  TestEngine engine({.n_pages = 12, .max_requests = 4});
  std::vector<Answer*> answers;
  for (int i = 0; i < 4; ++i)
    answers.push_back(
        &engine.ask({.prompt = prompt_of(6, 20 * i), .max_tokens = 30, .sampling = greedy()}));
  engine->run_until_idle();
  EXPECT_GT(engine->counts().preemptions, 0);
  EXPECT_GT(engine->counts().rows_found, 0);
  for (const Answer* a : answers) EXPECT_EQ(a->end->n_cached_tokens, 0);
}

// https://github.com/local-inference-lab/vllm/issues/480: hits that outlive their pages.
TEST(Engine, APrefixIsRightAgainAfterPressureThatDroppedIt) {
  TestEngine engine({.n_pages = 30, .max_context = 118, .max_batch_tokens = 40});
  for (int round = 0; round < 5; ++round) {
    const Answer& prefix =
        engine.ask({.prompt = prompt_of(90), .max_tokens = 6, .sampling = greedy()});
    engine->run_until_idle();
    EXPECT_EQ(prefix.tokens, engine.expected(prompt_of(90), 6));
    const Answer& pressure =
        engine.ask({.prompt = prompt_of(110, 30 + round), .max_tokens = 6, .sampling = greedy()});
    engine->run_until_idle();
    EXPECT_EQ(pressure.tokens, engine.expected(prompt_of(110, 30 + round), 6));
    EXPECT_EQ(engine->counts().held_pages, 0);
  }
}

TEST(Engine, RefusesMoreThanItsQueueHolds) {
  TestEngine engine({.max_queued = 3});
  for (int i = 0; i < 3; ++i) engine.ask({.prompt = {1}, .max_tokens = 1});
  const auto refused = engine->submit({.prompt = {1}}, nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kResourceExhausted);
  EXPECT_EQ(refused.status().message(), "3 requests wait already: try again later");
  engine->run_until_idle();
  engine.ask({.prompt = {1}, .max_tokens = 1});
  engine->run_until_idle();
}

struct Recorder final : RowRecorder {
  std::map<int64_t, std::vector<float>> logits;
  std::map<std::pair<int64_t, int64_t>, std::vector<float>> hidden;
  void on_hidden(int64_t layer, int64_t position, View<const float, 1> row) override {
    hidden[{layer, position}].assign(row.data, row.data + row.size());
  }
  void on_logits(int64_t position, View<const float, 1> row) override {
    logits[position].assign(row.data, row.data + row.size());
  }
};

TEST(Engine, ShowsEveryPositionThatIsRun) {
  TestEngine engine({.model = {.max_logit_rows = 8}, .max_batch_tokens = 16});
  Recorder recorder;
  engine.ask({.prompt = {50}, .max_tokens = 30, .sampling = greedy()});
  engine->step();  // a neighbour that is not watched
  const auto prompt = prompt_of(21);
  const Answer& a =
      engine.ask({.prompt = prompt, .max_tokens = 6, .sampling = greedy(), .recorder = &recorder});
  engine->run_until_idle();
  std::vector<int32_t> tokens = prompt;
  tokens.insert(tokens.end(), a.tokens.begin(), a.tokens.end());
  ASSERT_EQ(recorder.logits.size(), 26u);  // all but the last token
  for (int64_t p = 0; p < 26; ++p) {
    const auto& row = recorder.logits.at(p);
    const auto best = std::max_element(row.begin(), row.end()) - row.begin();
    EXPECT_EQ(best, FakeModel::next(std::span(tokens).first(size_t(p) + 1), 97)) << p;
    for (int64_t layer = 0; layer <= 2; ++layer)
      EXPECT_EQ(recorder.hidden.at({layer, p}), (std::vector<float>{float(tokens[p]), float(p)}));
  }
}

TEST(Engine, SpreadsRequestsOverGroups) {
  TestEngine engine({.layout = {.tp = 2, .dp = 2}, .n_threads = 4, .max_requests = 2});
  std::vector<std::pair<std::vector<int32_t>, Answer*>> asked;
  for (int i = 0; i < 4; ++i) {
    const auto prompt = prompt_of(10, i);
    asked.emplace_back(prompt,
                       &engine.ask({.prompt = prompt, .max_tokens = 10, .sampling = greedy()}));
  }
  engine->step();
  EXPECT_EQ(engine->counts().running, 4);  // two in each group
  engine->run_until_idle();
  for (const auto& [prompt, answer] : asked) EXPECT_EQ(answer->tokens, engine.expected(prompt, 10));
}

TEST(Engine, ServesManyThreads) {
  TestEngine engine({.n_threads = 2, .n_pages = 30});
  engine->start();
  constexpr int kThreads = 4, kEach = 12;
  std::vector<std::vector<Answer>> answers(kThreads, std::vector<Answer>(kEach));
  std::atomic<int> n_ended = 0;
  struct Counting final : RequestListener {
    Counting(Answer& a, std::atomic<int>& n) : kept(a), n_ended(&n) {}
    Verdict on_token(const TokenEvent& e) override { return kept.on_token(e); }
    void on_end(const EndEvent& e) override {
      kept.on_end(e);
      n_ended->fetch_add(1);
      n_ended->notify_all();
    }
    KeepingListener kept;
    std::atomic<int>* n_ended;
  };
  std::vector<std::thread> clients;
  for (int c = 0; c < kThreads; ++c)
    clients.emplace_back([&, c] {
      for (int i = 0; i < kEach; ++i) {
        const auto id =
            engine->submit({.prompt = prompt_of(3 + i, c), .max_tokens = 20, .sampling = greedy()},
                           std::make_unique<Counting>(answers[c][i], n_ended));
        EXPECT_TRUE(id.ok());
        if (i % 4 == 3) engine->cancel(*id);
      }
    });
  for (std::thread& t : clients) t.join();
  for (int n; (n = n_ended.load()) < kThreads * kEach;) n_ended.wait(n);
  engine->stop();
  for (int c = 0; c < kThreads; ++c)
    for (int i = 0; i < kEach; ++i) {
      const Answer& a = answers[c][i];
      EXPECT_EQ(a.n_ends, 1);
      const auto expected = engine.expected(prompt_of(3 + i, c), 20);
      EXPECT_TRUE(std::equal(a.tokens.begin(), a.tokens.end(), expected.begin()));
      EXPECT_TRUE(a.tokens.size() == 20 || i % 4 == 3);
    }
}

TEST(Engine, StoppingEndsEveryRequestAndRefusesLaterOnes) {
  TestEngine engine({.n_pages = 1000, .max_context = 4000, .max_requests = 1});
  engine->start();
  const Answer& running = engine.ask({.prompt = {1}, .max_tokens = 3900, .sampling = greedy()});
  const Answer& waiting = engine.ask({.prompt = {2}, .max_tokens = 3900, .sampling = greedy()});
  engine->stop();
  for (const Answer* a : {&running, &waiting}) {
    EXPECT_EQ(a->n_ends, 1);
    EXPECT_EQ(a->end->reason, EndReason::kCancelled);
    EXPECT_EQ(a->end->message, "the engine stopped");
  }
  EXPECT_EQ(engine->submit({.prompt = {1}}, nullptr).status().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace bascule
