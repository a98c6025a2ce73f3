// The table that `tune` prints at its end, and texts of its cells for other tables.
#pragma once

#include <string>

#include "compiler/base/job.h"

namespace wl {

// Formats the table and the notes below it. `job` must have a result.
std::string report_table(const Job& job, bool colour, bool trust_workers);

// Return the time of one kernel per operation, and the speed-up over it ("-": unknown). "~" marks estimates.
std::string default_text(double default_ns, bool estimated);
std::string speed_up_text(double default_ns, double best_ns, bool estimated);

}  // namespace wl
