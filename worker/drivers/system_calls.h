// The system calls that the children of a worker may make, as lists of libseccomp. Every other call, of this or another
// architecture, fails with EPERM, which ends nothing by itself: a program that can do without goes on.
#pragma once

#include "absl/status/statusor.h"
#include "worker/drivers/process.h"

namespace wl {

enum class Permitted {
  kCandidate,  // memory, clocks, reading files: no process, no thread, no file is made, no other process reached
  kLibrary,    // the same, and memory that is writable and executable: for libraries that make code at run time
  kCompiler,   // also processes and files, for compilers
  kDriver,     // also what drivers of GPUs use
};

// Makes the rest of this process's life, in all its threads, obey the list. It cannot be undone.
absl::Status allow_only(Permitted permitted);

// Returns a file in memory with the list as a program for the kernel, read from its begin, which bwrap loads.
absl::StatusOr<Descriptor> filter_program(Permitted permitted);

}  // namespace wl
