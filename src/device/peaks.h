// What this machine can do at most: how fast its memory reads, how many float products it makes.
// Measured once a machine, in under two seconds, and kept in a file; floors and shares of peak are
// told against it.
#pragma once

#include <filesystem>

#include "base/status.h"
#include "base/threads.h"
#include "device/machine.h"

namespace bascule {

struct Peaks {
  struct Of {
    int n_threads = 0;
    double read_bytes_per_second = 0;
    double fma_flops_per_second = 0;  // float products and sums of the widest instruction set
    bool disturbed = false;           // other programs took processor time: the rates are too low
  };
  Of one, all;  // one thread; every thread of the team
};

// The best of a few short rounds, since neighbours only ever take away.
Peaks measure_peaks(const Machine& machine, Threads& threads);

using MeasurePeaks = Peaks (*)(const Machine& machine, Threads& threads);

// From `file` if it was measured on this processor, with this many threads, by this version; else
// measured now, and kept there for the next time unless it was disturbed. A file that can't be read
// or written is passed over: it costs a second and changes no answer.
Peaks peaks_of(const Machine& machine, Threads& threads, const std::filesystem::path& file,
               MeasurePeaks measure = measure_peaks);

// $XDG_CACHE_HOME/bascule/peaks.json, ~/.cache without it; empty without either.
std::filesystem::path peaks_file();

}  // namespace bascule
