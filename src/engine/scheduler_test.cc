#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "support/test_engine.h"

namespace bascule {
namespace {

const TokenRules kRules{.vocab_size = 97, .n_valid_tokens = 97};

std::unique_ptr<Request> request_of(RequestId id, int64_t n_prompt, int64_t max_tokens) {
  return std::make_unique<Request>(
      id, RequestSpec{.prompt = std::vector<int32_t>(size_t(n_prompt), 1), .sampling = greedy()},
      nullptr, kRules, max_tokens, 0);
}

// What a step runs, as (request, tokens, draws).
using Pieces = std::vector<std::tuple<RequestId, int64_t, bool>>;
Pieces pieces_of(const GroupPlan& plan) {
  Pieces pieces;
  for (const Piece& p : plan.pieces) pieces.emplace_back(p.request->id(), p.n_tokens, p.draws);
  return pieces;
}

// Every draw gives token 5.
StepResult fives(const StepPlan& plan) {
  StepResult result;
  for (const GroupPlan& g : plan.groups)
    result.groups.emplace_back(g.draws.size(), Sampled{.token = 5});
  return result;
}

TEST(Scheduler, PutsRunningAnswersFirstThenPiecesOfPromptsByAge) {
  Scheduler s = Scheduler::create({.n_pages = 100,
                                   .page_size = 4,
                                   .max_context = 100,
                                   .max_batch_tokens = 10,
                                   .max_requests = 3,
                                   .max_logit_rows = 3,
                                   .keeps_prefixes = false})
                    .value();
  s.add(request_of(1, 4, 9));
  s.add(request_of(2, 13, 9));
  s.add(request_of(3, 2, 9));
  s.add(request_of(4, 2, 9));  // no seat
  const auto step = [&] {
    const Pieces pieces = pieces_of(s.plan().groups[0]);
    s.commit(fives(s.plan()));
    return pieces;
  };
  // plan() may be asked again before commit(): nothing has happened yet.
  EXPECT_EQ(pieces_of(s.plan().groups[0]), (Pieces{{1, 4, true}, {2, 6, false}}));
  EXPECT_EQ(step(), (Pieces{{1, 4, true}, {2, 6, false}}));
  EXPECT_EQ(step(), (Pieces{{1, 1, true}, {2, 7, true}, {3, 2, true}}));
  EXPECT_EQ(step(), (Pieces{{1, 1, true}, {2, 1, true}, {3, 1, true}}));
  EXPECT_EQ(s.counts().waiting, 1);
}

TEST(Scheduler, TellsWhereEachTokenStands) {
  Scheduler s = Scheduler::create({.n_pages = 100,
                                   .page_size = 4,
                                   .max_context = 100,
                                   .max_batch_tokens = 6,
                                   .max_requests = 2,
                                   .max_logit_rows = 2})
                    .value();
  s.add(request_of(1, 3, 9));
  s.add(request_of(2, 5, 9));
  s.commit(fives(s.plan()));
  const GroupPlan& plan = s.plan().groups[0];
  EXPECT_EQ(plan.tokens, (std::vector<int32_t>{5, 1, 1}));
  EXPECT_EQ(plan.position, (std::vector<int32_t>{3, 3, 4}));
  EXPECT_EQ(plan.sequence, (std::vector<int32_t>{0, 1, 1}));
  EXPECT_EQ(plan.logit_rows, (std::vector<int32_t>{0, 2}));
  ASSERT_EQ(plan.draws.size(), 2u);
  EXPECT_EQ(plan.draws[1].position, 5);
  EXPECT_EQ(plan.draws[1].logit_row, 1);
}

TEST(Scheduler, TakesPagesFromTheYoungestAndResumesItAfterAnEnd) {
  Scheduler s = Scheduler::create({.n_pages = 4,
                                   .page_size = 4,
                                   .max_context = 16,
                                   .max_batch_tokens = 8,
                                   .max_requests = 3,
                                   .max_logit_rows = 3,
                                   .keeps_prefixes = false})
                    .value();
  s.add(request_of(1, 3, 9));  // 12 tokens, three pages in the end
  s.add(request_of(2, 3, 9));
  std::vector<Pieces> steps;
  for (int i = 0; i < 24 && s.has_work(); ++i) {
    steps.push_back(pieces_of(s.plan().groups[0]));
    s.commit(fives(s.plan()));
    s.audit();
  }
  EXPECT_FALSE(s.has_work());
  EXPECT_EQ(steps[5], (Pieces{{1, 1, true}, {2, 1, true}}));  // positions 7: two pages each
  EXPECT_EQ(steps[6], (Pieces{{1, 1, true}}));                // the third page was 2's
  EXPECT_EQ(steps[8], (Pieces{{1, 1, true}}));                // its last
  EXPECT_EQ(steps[9], (Pieces{{2, 8, false}}));               // 3 + 6 tokens anew, in two pieces
  EXPECT_EQ(steps[10], (Pieces{{2, 1, true}}));
  EXPECT_EQ(s.counts().preemptions, 1);
}

TEST(Scheduler, SendsARequestToTheGroupWithTheLeastWork) {
  Scheduler s = Scheduler::create({.n_groups = 2,
                                   .n_pages = 100,
                                   .page_size = 4,
                                   .max_context = 400,
                                   .max_batch_tokens = 500,
                                   .max_requests = 8,
                                   .max_logit_rows = 8})
                    .value();
  s.add(request_of(1, 100, 9));
  s.add(request_of(2, 20, 9));
  s.add(request_of(3, 30, 9));
  s.add(request_of(4, 60, 9));
  const StepPlan& plan = s.plan();
  EXPECT_EQ(pieces_of(plan.groups[0]), (Pieces{{1, 100, true}}));
  EXPECT_EQ(pieces_of(plan.groups[1]), (Pieces{{2, 20, true}, {3, 30, true}, {4, 60, true}}));
  EXPECT_EQ(plan.group_tokens, (std::vector<int64_t>{100, 110}));
}

TEST(SchedulerDeathTest, AuditTellsPagesThatNoRequestHolds) {
  Scheduler s = Scheduler::create({.n_pages = 4,
                                   .page_size = 4,
                                   .max_context = 16,
                                   .max_batch_tokens = 8,
                                   .max_requests = 3,
                                   .max_logit_rows = 3})
                    .value();
  PageRun lost = s.pool(0).open();
  ASSERT_TRUE(s.pool(0).extend(lost, 3));
  EXPECT_DEATH(s.audit(), "n_held\\(\\) == 0: 3 against 0");
}

// The whole engine over fake models that check what they read: random requests, cancels and stops,
// pools so small that answers are preempted all the time.
class Churn {
 public:
  explicit Churn(unsigned seed) : random_(seed), engine_(options()) {}

  void run(int n_steps) {
    for (int i = 0; i < n_steps; ++i) {
      if (below(4) == 0) ask();
      if (below(25) == 0 && !asked_.empty())
        engine_->cancel(asked_[below(asked_.size())].answer->id);
      engine_->step();
      check();
    }
    // Everything ends, and at one token a step at least.
    int64_t tokens_left = 0;
    for (const Asked& a : asked_)
      if (!a.answer->end) tokens_left += a.spec.prompt.size() + *a.spec.max_tokens;
    while (engine_->step()) ASSERT_GE(tokens_left-- * 3, 0);
    for (const Asked& a : asked_) check_answer(a);
    EXPECT_EQ(engine_->counts().held_pages, 0);
  }
  Scheduler::Counts counts() { return engine_->counts(); }
  size_t n_asked() const { return asked_.size(); }

 private:
  struct Asked {
    RequestSpec spec;
    std::vector<int32_t> expected;  // its answer alone
    size_t stop_at;                 // its listener stops it there
    Answer* answer;
  };

  size_t below(size_t n) { return random_() % n; }
  TestEngine::Options options() {
    const int64_t requests = 1 + int64_t(below(6));
    return {.model = {.max_logit_rows = requests},
            .layout = {.tp = 1 + int(below(2)), .ep = 1, .dp = 1 + int(below(2))},
            .n_pages = 8 + int64_t(below(12)),
            .max_context = 30,
            .max_batch_tokens = requests + int64_t(below(12)),
            .max_requests = requests,
            .keeps_prefixes = below(4) > 0};
  }

  void ask() {
    Asked a;
    // Many begin alike, up to anywhere.
    const int32_t stem = below(2) ? 10 : int32_t(below(97));
    const size_t n_prompt = 1 + below(20), n_alike = below(20);
    for (size_t i = 0; i < n_prompt; ++i)
      a.spec.prompt.push_back(i < n_alike ? (stem + int32_t(i) % 7) % 97 : int32_t(below(97)));
    if (below(5) == 0) a.spec.cache_salt = "another tenant";
    a.spec.max_tokens = 1 + below(30 - a.spec.prompt.size());
    a.spec.sampling =
        below(2) ? greedy() : SamplingParams{.frequency_penalty = 0.4f, .seed = below(9)};
    a.stop_at = below(3) ? 1000 : below(20);
    TestEngine alone({});
    const Answer& expected = alone.ask(a.spec);
    alone->run_until_idle();
    a.expected = expected.tokens;
    a.answer = &engine_.ask(a.spec, [at = a.stop_at](const TokenEvent& e) {
      return size_t(e.index) == at ? RequestListener::Verdict::kStop
                                   : RequestListener::Verdict::kGoOn;
    });
    asked_.push_back(std::move(a));
  }

  void check() {
    engine_->audit();
    for (const Asked& a : asked_) {
      ASSERT_LE(a.answer->tokens.size(), a.expected.size());
      ASSERT_TRUE(std::equal(a.answer->tokens.begin(), a.answer->tokens.end(), a.expected.begin()));
    }
  }

  void check_answer(const Asked& a) {
    ASSERT_EQ(a.answer->n_ends, 1);
    switch (a.answer->end->reason) {
      case EndReason::kCancelled:
        break;
      case EndReason::kStop:
        EXPECT_EQ(a.answer->tokens.size(), a.stop_at + 1);
        break;
      default:
        EXPECT_EQ(a.answer->end->reason, EndReason::kLength);
        EXPECT_EQ(a.answer->tokens, a.expected);
    }
  }

  std::mt19937 random_;
  TestEngine engine_;
  std::vector<Asked> asked_;
};

TEST(Scheduler, KeepsItsPromisesUnderChurn) {
  int64_t n_preemptions = 0, n_found = 0;
  size_t n_asked = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Churn churn(seed);
    churn.run(120);
    if (testing::Test::HasFailure()) return;
    n_preemptions += churn.counts().preemptions;
    n_found += churn.counts().rows_found;
    n_asked += churn.n_asked();
  }
  EXPECT_GT(n_preemptions, 100);
  EXPECT_GT(n_found, 2000);
  EXPECT_GT(n_asked, 1500u);
}

}  // namespace
}  // namespace bascule
