// Exit codes of every command (docs/report.md lists them): scripts rely on them, so a Status maps to one in one place.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace wl {

enum ExitCode {
  kExitDone = 0,
  kExitUsage = 1,        // wrong command line
  kExitBadInput = 2,     // file, graph or option value
  kExitNotStored = 3,    // not in the store
  kExitUnreachable = 4,  // coordinator or worker
  kExitNoCandidate = 5,  // no correct candidate; or `run --check` found a wrong result
  kExitInterrupted = 6,  // best so far kept
  kExitInternal = 7,
};

int exit_code_of(const absl::Status& status);

// One line for a human: "error: MESSAGE", without the status code's name.
std::string error_line(const absl::Status& status);

}  // namespace wl
