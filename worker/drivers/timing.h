// Decides how candidates are timed and when their timing stops. The caller provides the runs and the clock, so tests
// can simulate both.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/base/records.h"
#include "worker/drivers/messages.h"

namespace wl {

// Runs slot `slot` (a loaded candidate) `calls` times in a row and returns the nanoseconds that the calls took.
using TimedRun = std::function<int64_t(int slot, int64_t calls)>;

// Times one slot by itself, or several in interleaved rounds, of which every other one has the reverse order, so that
// no slot always follows the same one. A sample is the time of one call, or the mean of an inner loop for kernels below
// 20 us. Each slot is warmed up first; in rounds also before every sample, unless caches are to be cold or a call takes
// 10 ms or more. Rounds stop after min_repeats once the budget is spent, or after three if calls take half a second or
// more; with lost_factor, a slot that is too far behind after eight rounds gets no more samples. A slot that is timed
// alone stops early when it has lost: all of its samples, at least two, exceed the best time by a factor that decreases
// as samples are added. If it has not lost, it stops after min_repeats samples once its budget is spent or its median
// is known to about 1.5 %.
//
// If `clock_mhz` is given, it is read after every sample. Samples at an unusual clock (clock_moved) are taken once
// more, unless they are more than a quarter of all samples: then there is no usual clock.
std::vector<Samples> time_slots(const Recipe& recipe, int slots, const TimedRun& run,
                                const std::function<int()>& clock_mhz = nullptr);

// Returns how many samples were taken at a clock that differs by more than 5 % from `median_clock`.
int clock_moved(const Samples& samples);
int median_clock(const Samples& samples);  // returns the median of the clocks of all samples in MHz; 0: not known

// Whether the confidence interval (about 95 %, by order statistics) of the median is narrower than `relative` of the
// median.
bool median_is_known(std::vector<int64_t> samples, double relative);

}  // namespace wl
