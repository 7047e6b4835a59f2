#include "base/trace.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/json.h"
#include "support/temp_folder.h"

namespace bascule {
namespace {

Json written(const TempFolder& folder, int64_t n_lost = 0) {
  const auto path = folder.path() / "trace.json";
  EXPECT_EQ(trace::write(path).value(), n_lost);
  return parse_json(file_bytes(path), "trace").value();
}

TEST(Trace, KeepsZonesOfEachThread) {
  const TempFolder folder;
  trace::start();
  {
    const TraceZone outer("outer");
    const TraceZone inner(trace::name("in" + std::string("ner")));
  }
  std::thread([] { const TraceZone zone("elsewhere"); }).join();
  const Json json = written(folder);
  const Json& events = json["traceEvents"];
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["name"], "inner");  // in the order in which they end
  EXPECT_EQ(events[1]["name"], "outer");
  EXPECT_EQ(events[2]["name"], "elsewhere");
  EXPECT_EQ(events[0]["tid"], events[1]["tid"]);
  EXPECT_NE(events[1]["tid"], events[2]["tid"]);
  EXPECT_GE(events[0]["ts"].get<double>(), events[1]["ts"].get<double>());
  EXPECT_LE(events[0]["dur"].get<double>(), events[1]["dur"].get<double>());
}

TEST(Trace, OffItKeepsNothing) {
  const TempFolder folder;
  trace::start();
  written(folder);
  {
    const TraceZone zone("late");
  }
  EXPECT_EQ(written(folder)["traceEvents"].size(), 0u);
}

TEST(Trace, CountsWhatItDoesNotKeep) {
  const TempFolder folder;
  trace::start(2);
  for (int i = 0; i < 5; ++i) const TraceZone zone("short");
  const Json json = written(folder, 3);
  EXPECT_EQ(json["traceEvents"].size(), 2u);
  EXPECT_EQ(json["otherData"]["zones_not_kept"], 3);
}

TEST(Trace, OneNameIsOnePointer) {
  EXPECT_EQ(trace::name("layers.norm"), trace::name("layers.norm"));
}

}  // namespace
}  // namespace bascule
