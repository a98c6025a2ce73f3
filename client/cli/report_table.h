// The table that `tune` prints at its end.
#pragma once

#include <string>

#include "compiler/base/job.h"

namespace wl {

// Formats the table and the notes below it. `job` must have a result.
std::string report_table(const Job& job, bool colour, bool trust_workers);

}  // namespace wl
