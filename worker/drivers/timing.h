// When to stop measuring. Pure: what runs and what the clock says come from the caller, so every rule has a test.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/base/records.h"
#include "worker/drivers/messages.h"

namespace wl {

// Runs slot `slot` `calls` times in a row and returns the nanoseconds that took.
using TimedRun = std::function<int64_t(int slot, int64_t calls)>;

// One slot, or several in rounds when the recipe says so (every other round backwards, so that no slot always follows
// the same one). A sample is one call, or the mean over an inner loop for kernels below 20 us. Each slot is warmed up
// first. A slot stops: hopeless after 3 samples; else after min_repeats once its budget is spent, its median is known
// to about 1.5 %, or it is clearly behind the best.
// `clock_mhz`, where there is one to ask, is read after every sample. Samples at another clock than most (clock_moved)
// are taken once more, unless they are more than a quarter: then the clock has no usual value to wait for.
std::vector<Samples> time_slots(const Recipe& recipe, int slots, const TimedRun& run,
                                const std::function<int()>& clock_mhz = nullptr);

// How many of the samples were taken at a clock that is more than 5 % from `median_clock`, that of all of them.
int clock_moved(const Samples& samples);
int median_clock(const Samples& samples);  // 0: not known

// Whether the ~95 % confidence interval of the median (by order statistics) is narrower than `relative` of it.
bool median_is_known(std::vector<int64_t> samples, double relative);

}  // namespace wl
