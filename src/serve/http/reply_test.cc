#include "serve/http/reply.h"

#include <gtest/gtest.h>

namespace bascule {
namespace {

TEST(Exchange, FramesEventsAsChunks) {
  int n_wakes = 0;
  Exchange exchange({}, 1000, [&] { ++n_wakes; });
  exchange.begin_events({{"x-request-id", "a"}});
  const std::string head = exchange.take().bytes;
  EXPECT_EQ(head.substr(0, 35), "HTTP/1.1 200 OK\r\nx-request-id: a\r\nc");
  EXPECT_NE(head.find("transfer-encoding: chunked\r\n"), std::string::npos);
  exchange.write("data: 0123456789\n\n");
  exchange.write("data: x\n\n");
  EXPECT_EQ(exchange.take().bytes,
            "12\r\ndata: 0123456789\n\n\r\n"
            "9\r\ndata: x\n\n\r\n");
  EXPECT_EQ(n_wakes, 2);  // the second piece was taken with the first
  exchange.end();
  const Exchange::Output last = exchange.take();
  EXPECT_EQ(last.bytes, "0\r\n\r\n");
  EXPECT_TRUE(last.has_ended);
}

TEST(Exchange, CutsOffAReaderWhoLeavesTooMuch) {
  Exchange exchange({}, 400, [] {});
  exchange.begin_events({});
  for (int i = 0; i < 100; ++i) exchange.write("data: abc\n\n");
  const Exchange::Output output = exchange.take();
  EXPECT_TRUE(output.is_cut_off);
  EXPECT_TRUE(output.bytes.empty());
}

TEST(Exchange, TellsOfALostClientOnceAndOnlyBeforeTheEnd) {
  int n_told = 0;
  Exchange lost({}, 400, [] {});
  lost.on_gone([&] { ++n_told; });
  lost.abandon();
  lost.abandon();
  EXPECT_EQ(n_told, 1);
  lost.on_gone([&] { ++n_told; });  // late: at once
  EXPECT_EQ(n_told, 2);
  lost.begin_events({});
  lost.write("data: nobody\n\n");
  EXPECT_TRUE(lost.take().bytes.empty());

  // A part of https://github.com/ROCm/ATOM/pull/1589: no abort after a normal finish.
  Exchange whole({}, 400, [] {});
  whole.on_gone([&] { ++n_told; });
  whole.send({.body = "{}"});
  whole.abandon();
  EXPECT_EQ(n_told, 2);
}

TEST(Exchange, OldClientsGetNoChunksAndHeadGetsNoBody) {
  Exchange old({.keeps_alive = false, .is_chunked = false}, 1000, [] {});
  old.begin_events({});
  old.take();
  old.write("data: x\n\n");
  EXPECT_EQ(old.take().bytes, "data: x\n\n");
  Exchange head({.is_head = true}, 1000, [] {});
  head.send({.body = "12345"});
  const std::string bytes = head.take().bytes;
  EXPECT_NE(bytes.find("content-length: 5\r\n"), std::string::npos);
  EXPECT_TRUE(bytes.ends_with("\r\n\r\n"));
}

TEST(Message, KnowsWhatMayGoBackIntoAHeader) {
  EXPECT_TRUE(is_plain_word("req-1_A.b"));
  for (const char* text : {"", "a b", "a\r\nx: y", "\xc3\xa9", "a;b"})
    EXPECT_FALSE(is_plain_word(text)) << text;
  EXPECT_FALSE(is_plain_word(std::string(129, 'a')));
}

}  // namespace
}  // namespace bascule
