#include "device/peaks.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "base/atomic_file.h"
#include "base/check.h"
#include "base/json.h"

namespace bascule {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRounds = 6;

// What a loop computed must be wanted, or the compiler drops the loop.
template <typename T>
void keep(T& value) {
  asm volatile("" : : "m"(value) : "memory");
}

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

struct Rate {
  double per_second = 0;
  bool disturbed = false;
};

// Work a second when every worker does its part of `work` at once: the best of a few rounds. It is
// disturbed if even in that round some worker was kept from its processor a tenth of the time.
template <typename F>
Rate best_rate(Threads& threads, double work, F&& loop) {
  Rate best;
  std::vector<double> waited(size_t(threads.count()));
  for (int round = 0; round < kRounds; ++round) {
    const auto started = Clock::now();
    threads.run([&](int worker) {
      const auto began = Clock::now();
      const double ran_before = thread_seconds();
      loop(worker);
      const std::chrono::duration<double> passed = Clock::now() - began;
      waited[size_t(worker)] = 1 - (thread_seconds() - ran_before) / passed.count();
    });
    const std::chrono::duration<double> took = Clock::now() - started;
    const double rate = work / took.count();
    if (rate > best.per_second)
      best = {rate, *std::max_element(waited.begin(), waited.end()) > 0.1};
  }
  return best;
}

// Memory far larger than the caches, in large pages where there are some.
class ReadBuffer {
 public:
  static constexpr int64_t kBytes = int64_t{256} << 20;

  ReadBuffer()
      : data_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    BASCULE_CHECK(data_ != MAP_FAILED);
    madvise(data_, kBytes, MADV_HUGEPAGE);
    std::fill_n(static_cast<uint8_t*>(data_), kBytes, uint8_t{1});
  }
  ~ReadBuffer() { munmap(data_, kBytes); }
  ReadBuffer(const ReadBuffer&) = delete;
  ReadBuffer& operator=(const ReadBuffer&) = delete;

  // Reads part `index` of `count`.
  void read(int index, int count) const {
    using Words [[gnu::vector_size(32)]] = uint64_t;
    const auto* words = static_cast<const Words*>(data_);
    const int64_t n = kBytes / int64_t(sizeof(Words));
    Words a = {}, b = {}, c = {}, d = {};
    for (int64_t i = n * index / count; i + 4 <= n * (index + 1) / count; i += 4) {
      a ^= words[i];
      b ^= words[i + 1];
      c ^= words[i + 2];
      d ^= words[i + 3];
    }
    a ^= b ^ c ^ d;
    keep(a);
  }

 private:
  void* data_;
};

// Twelve independent chains of fused products and sums: two pipes of four cycles need eight. In
// assembly, since it must run where this file's flags don't reach, and nothing may move out of the
// loop.
constexpr double kChains = 12;
constexpr int64_t kFmaSteps = 400000;

void fma_chains_baseline() {  // a product and a sum stay two instructions here
  using Four [[gnu::vector_size(16)]] = float;
  Four sums[6] = {}, factor = {0.5f, 0.5f, 0.5f, 0.5f};
  for (int64_t i = 0; i < 2 * kFmaSteps; ++i)
    for (Four& sum : sums) sum = sum * factor + factor;
  keep(sums);
}

#if defined(__x86_64__)
void fma_chains_avx2() {
  int64_t n = kFmaSteps;
  asm volatile(
      ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13\n vpxor %%xmm\\i, %%xmm\\i, %%xmm\\i\n .endr\n"
      "1:\n"
      ".irp i,0,1,2,3,4,5,6,7,8,9,10,11\n vfmadd231ps %%ymm12, %%ymm13, %%ymm\\i\n .endr\n"
      "dec %0\n jnz 1b\n vzeroupper\n"
      : "+r"(n)
      :
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm12", "xmm13");
}
void fma_chains_avx512() {
  int64_t n = kFmaSteps;
  asm volatile(
      ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13\n vpxor %%xmm\\i, %%xmm\\i, %%xmm\\i\n .endr\n"
      "1:\n"
      ".irp i,0,1,2,3,4,5,6,7,8,9,10,11\n vfmadd231ps %%zmm12, %%zmm13, %%zmm\\i\n .endr\n"
      "dec %0\n jnz 1b\n vzeroupper\n"
      : "+r"(n)
      :
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm12", "xmm13");
}
#elif defined(__aarch64__)
void fma_chains_neon() {
  int64_t n = kFmaSteps;
  asm volatile(
      ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13\n movi v\\i\\().4s, #0\n .endr\n"
      "1:\n"
      ".irp i,0,1,2,3,4,5,6,7,8,9,10,11\n fmla v\\i\\().4s, v12.4s, v13.4s\n .endr\n"
      "subs %0, %0, #1\n b.ne 1b\n"
      : "+r"(n)
      :
      : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",
        "v13");
}
#endif

struct FmaLoop {
  void (*run)();
  double lanes;
};
FmaLoop widest(const Machine& machine) {
#if defined(__x86_64__)
  if (machine.has(Isa::kAvx512)) return {fma_chains_avx512, 16};
  if (machine.has(Isa::kAvx2)) return {fma_chains_avx2, 8};
#elif defined(__aarch64__)
  if (machine.has(Isa::kNeon)) return {fma_chains_neon, 4};
#endif
  return {fma_chains_baseline, 4};
}

Peaks::Of measure(const Machine& machine, Threads& threads, const ReadBuffer& buffer) {
  const FmaLoop fma = widest(machine);
  const int n = threads.count();
  const Rate read =
      best_rate(threads, double(ReadBuffer::kBytes), [&](int worker) { buffer.read(worker, n); });
  const Rate flops =
      best_rate(threads, n * 2 * kChains * fma.lanes * kFmaSteps, [&](int) { fma.run(); });
  return {.n_threads = n,
          .read_bytes_per_second = read.per_second,
          .fma_flops_per_second = flops.per_second,
          .disturbed = read.disturbed || flops.disturbed};
}

Json to_json(const Peaks::Of& of) {
  return {{"threads", of.n_threads},
          {"read_bytes_per_second", of.read_bytes_per_second},
          {"fma_flops_per_second", of.fma_flops_per_second}};
}

// What was measured decides what may be used again: processor, instruction sets, threads, version.
std::string fingerprint(const Machine& machine, int n_threads) {
  std::string text = machine.processor;
  for (const Isa isa : machine.isas) text += ", " + std::string(name(isa));
  return text + ", " + std::to_string(n_threads) + " threads, bascule " BASCULE_VERSION;
}

Result<Peaks::Of> parse_of(const Json& root, std::string_view field) {
  const Json* of = root.is_object() ? find_field(root, field) : nullptr;
  const Json missing;
  const auto number = [&](const char* key) {
    const Json* value = of && of->is_object() ? find_field(*of, key) : nullptr;
    return as_double(value ? *value : missing, key);
  };
  BASCULE_TRY_ASSIGN(const double threads, number("threads"));
  BASCULE_TRY_ASSIGN(const double read, number("read_bytes_per_second"));
  BASCULE_TRY_ASSIGN(const double fma, number("fma_flops_per_second"));
  if (!(threads >= 1 && threads < 1e6 && read > 0 && fma > 0))
    return invalid_argument("peaks that aren't above zero");
  return Peaks::Of{int(threads), read, fma, false};
}

Result<Peaks> load(const std::filesystem::path& file, const std::string& wanted) {
  std::ifstream stream(file);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  BASCULE_TRY_ASSIGN(const Json root, parse_json(text, file.string()));
  const Json* measured_on = root.is_object() ? find_field(root, "measured_on") : nullptr;
  if (!measured_on || *measured_on != wanted) return not_found("peaks of another machine");
  BASCULE_TRY_ASSIGN(const Peaks::Of one, parse_of(root, "one_thread"));
  BASCULE_TRY_ASSIGN(const Peaks::Of all, parse_of(root, "all_threads"));
  return Peaks{one, all};
}

Status save(const Peaks& peaks, const std::filesystem::path& file, const std::string& measured_on) {
  std::error_code ignored;  // create() says what is wrong
  std::filesystem::create_directories(file.parent_path(), ignored);
  const Json root = {{"measured_on", measured_on},
                     {"one_thread", to_json(peaks.one)},
                     {"all_threads", to_json(peaks.all)}};
  const std::string text = root.dump(2) + "\n";
  BASCULE_TRY_ASSIGN(AtomicFile out, AtomicFile::create(file));
  BASCULE_TRY(out.write_at(0, text.data(), int64_t(text.size())));
  return out.commit();
}

}  // namespace

Peaks measure_peaks(const Machine& machine, Threads& threads) {
  const ReadBuffer buffer;
  Threads one({.count = 1, .scratch_bytes = 0});
  return {.one = measure(machine, one, buffer), .all = measure(machine, threads, buffer)};
}

Peaks peaks_of(const Machine& machine, Threads& threads, const std::filesystem::path& file,
               MeasurePeaks measure) {
  const std::string wanted = fingerprint(machine, threads.count());
  if (const Result<Peaks> kept = load(file, wanted); kept.ok()) return *kept;
  const Peaks peaks = measure(machine, threads);
  const bool disturbed = peaks.one.disturbed || peaks.all.disturbed;
  if (!disturbed && !file.empty()) (void)save(peaks, file, wanted).ok();
  return peaks;
}

std::filesystem::path peaks_file() {
  const auto folder = [](const char* variable) {
    const char* value = std::getenv(variable);
    return std::filesystem::path(value ? value : "");
  };
  if (const auto cache = folder("XDG_CACHE_HOME"); !cache.empty())
    return cache / "bascule" / "peaks.json";
  if (const auto home = folder("HOME"); !home.empty())
    return home / ".cache" / "bascule" / "peaks.json";
  return {};
}

}  // namespace bascule
