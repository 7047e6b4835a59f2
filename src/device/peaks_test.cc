#include "device/peaks.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace bascule {
namespace {

namespace fs = std::filesystem;

int measurements = 0;

class PeaksFile : public testing::Test {
 protected:
  void SetUp() override {
    measurements = 0;
    folder_ = fs::temp_directory_path() / ("bascule-peaks-" + std::to_string(getpid()));
    file_ = folder_ / "deeper" / "peaks.json";
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& text) {
    fs::create_directories(file_.parent_path());
    std::ofstream(file_) << text;
  }
  std::string read() const {
    std::ostringstream text;
    text << std::ifstream(file_).rdbuf();
    return text.str();
  }

  fs::path folder_, file_;
  Machine machine_ = Machine::detect();
  Threads threads_{{.count = 2, .scratch_bytes = 0}};
};

TEST(Peaks, AreThoseOfAMachine) {
  Threads threads({.count = 2, .scratch_bytes = 0});
  const Peaks measured = measure_peaks(Machine::detect(), threads);
  EXPECT_EQ(measured.one.n_threads, 1);
  EXPECT_EQ(measured.all.n_threads, 2);
  for (const Peaks::Of& of : {measured.one, measured.all}) {
    EXPECT_GT(of.read_bytes_per_second, 1e7);
    EXPECT_LT(of.read_bytes_per_second, 1e13);
    EXPECT_GT(of.fma_flops_per_second, 1e7);
    EXPECT_LT(of.fma_flops_per_second, 1e13);
  }
}

// Each measurement finds a faster machine.
Peaks faster_each_time(const Machine&, Threads& threads) {
  const double speed = 1e9 * ++measurements;
  return {.one = {1, speed, 2 * speed, false},
          .all = {threads.count(), 3 * speed, 4 * speed, false}};
}
Peaks disturbed_at_first(const Machine& machine, Threads& threads) {
  Peaks peaks = faster_each_time(machine, threads);
  peaks.all.disturbed = measurements == 1;
  return peaks;
}

TEST_F(PeaksFile, IsWrittenOnceAndUsedAfterwards) {
  for (int call = 0; call < 3; ++call) {
    const Peaks peaks = peaks_of(machine_, threads_, file_, faster_each_time);
    EXPECT_EQ(peaks.one.read_bytes_per_second, 1e9);
    EXPECT_EQ(peaks.one.fma_flops_per_second, 2e9);
    EXPECT_EQ(peaks.all.read_bytes_per_second, 3e9);
    EXPECT_EQ(peaks.all.fma_flops_per_second, 4e9);
    EXPECT_EQ(peaks.all.n_threads, 2);
  }
  EXPECT_EQ(measurements, 1);
}

TEST_F(PeaksFile, KeepsNothingThatWasDisturbed) {
  EXPECT_TRUE(peaks_of(machine_, threads_, file_, disturbed_at_first).all.disturbed);
  EXPECT_FALSE(fs::exists(file_));
  const Peaks quiet = peaks_of(machine_, threads_, file_, disturbed_at_first);
  EXPECT_FALSE(quiet.all.disturbed);
  EXPECT_EQ(quiet.one.read_bytes_per_second, 2e9);
  EXPECT_EQ(peaks_of(machine_, threads_, file_, disturbed_at_first).one.read_bytes_per_second, 2e9);
}

TEST_F(PeaksFile, OfAnotherMachineOrBrokenIsMeasuredAnew) {
  const auto read_speed = [&] {
    return peaks_of(machine_, threads_, file_, faster_each_time).one.read_bytes_per_second;
  };
  write("{\"measured_on\": \"another\", \"one_thread\": {}}");
  EXPECT_EQ(read_speed(), 1e9);
  write("[1, 2");
  EXPECT_EQ(read_speed(), 2e9);
  EXPECT_EQ(read_speed(), 2e9);
  // The right machine, but a speed that can't be.
  std::string text = read();
  const size_t at = text.find("\"read_bytes_per_second\": ") + 25;
  text.replace(at, text.find(',', at) - at, "-1");
  write(text);
  EXPECT_EQ(read_speed(), 3e9);
}

TEST_F(PeaksFile, ThatCannotBeWrittenCostsNothing) {
  for (const char* file : {"/proc/no/such/peaks.json", ""})
    EXPECT_EQ(peaks_of(machine_, threads_, file, faster_each_time).one.n_threads, 1);
  EXPECT_EQ(measurements, 2);
}

}  // namespace
}  // namespace bascule
