// Decides when to stop measuring. Pure: the caller provides the runs and the clock, so every rule has a test.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/base/records.h"
#include "worker/drivers/messages.h"

namespace wl {

// Runs slot `slot` `calls` times in a row and returns the nanoseconds they took.
using TimedRun = std::function<int64_t(int slot, int64_t calls)>;

// Times one slot, or several in rounds when the recipe says so. Every other round goes backwards, so that no slot
// always follows the same one. A sample is one call, or the mean over an inner loop for kernels below 20 us. Each slot
// is warmed up first, and in rounds before every sample, unless a call takes 10 ms or more. Three rounds are enough
// where calls take half a second, and with lost_factor a slot that is behind after eight gets no more. A slot that is
// timed alone stops as soon as it has lost: all of its two samples or more exceed the best time, by the less the more
// samples there are. Otherwise it stops after min_repeats samples once its budget is spent or its median is known to
// about 1.5 %.
//
// If `clock_mhz` is given, it is read after every sample. Samples at an unusual clock (clock_moved) are taken once
// more, unless they are more than a quarter of all: then there is no usual clock to wait for.
std::vector<Samples> time_slots(const Recipe& recipe, int slots, const TimedRun& run,
                                const std::function<int()>& clock_mhz = nullptr);

// Returns how many samples were taken at a clock that differs by more than 5 % from `median_clock`.
int clock_moved(const Samples& samples);
int median_clock(const Samples& samples);  // returns the median over all samples; 0 = not known

// Whether the confidence interval (about 95 %, by order statistics) of the median is narrower than `relative` of the
// median.
bool median_is_known(std::vector<int64_t> samples, double relative);

}  // namespace wl
