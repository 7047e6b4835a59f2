#include "device/peaks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <sstream>

namespace bascule {
namespace {

namespace fs = std::filesystem;

class PeaksFile : public testing::Test {
 protected:
  void SetUp() override {
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

TEST_F(PeaksFile, IsWrittenOnceAndUsedAfterwards) {
  const Peaks measured = peaks_of(machine_, threads_, file_);
  EXPECT_EQ(measured.one.n_threads, 1);
  EXPECT_EQ(measured.all.n_threads, 2);
  for (const Peaks::Of& of : {measured.one, measured.all}) {
    EXPECT_GT(of.read_bytes_per_second, 1e8);
    EXPECT_LT(of.read_bytes_per_second, 1e13);
    EXPECT_GT(of.fma_flops_per_second, 1e8);
    EXPECT_LT(of.fma_flops_per_second, 1e13);
  }
  const std::string text = read();
  const Peaks kept = peaks_of(machine_, threads_, file_);
  EXPECT_EQ(kept.all.read_bytes_per_second, measured.all.read_bytes_per_second);
  EXPECT_EQ(kept.one.fma_flops_per_second, measured.one.fma_flops_per_second);
  EXPECT_EQ(read(), text);
}

TEST_F(PeaksFile, OfAnotherMachineOrBrokenIsMeasuredAnew) {
  for (const char* text : {"{\"measured_on\": \"another\", \"one_thread\": {}}", "[1, 2"}) {
    write(text);
    EXPECT_GT(peaks_of(machine_, threads_, file_).all.read_bytes_per_second, 1e8);
    EXPECT_NE(read().find("\"read_bytes_per_second\""), std::string::npos) << text;
  }
  // The right machine, but a speed that can't be.
  std::string text = read();
  const size_t at = text.find("\"read_bytes_per_second\": ") + 25;
  text.replace(at, text.find(',', at) - at, "-1");
  write(text);
  EXPECT_GT(peaks_of(machine_, threads_, file_).one.read_bytes_per_second, 1e8);
}

TEST_F(PeaksFile, ThatCannotBeWrittenCostsNothing) {
  EXPECT_GT(peaks_of(machine_, threads_, "/proc/no/such/peaks.json").one.fma_flops_per_second, 1e8);
  EXPECT_GT(peaks_of(machine_, threads_, {}).one.fma_flops_per_second, 1e8);
}

}  // namespace
}  // namespace bascule
