// The exit codes of all commands (docs/report.md lists them). Scripts rely on them, so only exit_code_of() maps a
// Status to a code.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace wl {

enum ExitCode {
  kExitDone = 0,
  kExitUsage = 1,        // the command line is wrong
  kExitBadInput = 2,     // a file, a graph or the value of an option is wrong
  kExitNotStored = 3,    // the store has no record for the graph
  kExitUnreachable = 4,  // a coordinator or worker is unreachable
  kExitNoCandidate = 5,  // no candidate is correct, or `run --check` found a wrong result
  kExitInterrupted = 6,  // the job was interrupted, and its best kernels so far are kept
  kExitInternal = 7,
};

int exit_code_of(const absl::Status& status);

// Returns the line "warploom: error: MESSAGE", without the name of the status code.
std::string error_line(const absl::Status& status);

}  // namespace wl
