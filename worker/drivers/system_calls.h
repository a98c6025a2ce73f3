// The system calls that the children of a worker may make, as lists for libseccomp. Every other system call, and every
// one of another architecture, fails with EPERM. The child does not end then: a program that can do without the call
// continues.
#pragma once

#include "absl/status/statusor.h"
#include "worker/drivers/process.h"

namespace wl {

enum class Permitted {
  // Memory, clocks and reading files. No new process, thread or file, and no access to other processes.
  kCandidate,
  // The calls of kCandidate, and memory that is writable and executable, for libraries that generate code at run time.
  kLibrary,
  kCompiler,  // the calls of compilers, which also start processes and write files
  kDriver,    // the calls of kCompiler, and those of GPU drivers
};

// Restricts this process with all its threads to the permitted system calls, for the rest of its life.
// FailedPrecondition: libseccomp or Linux refuses this.
absl::Status allow_only(Permitted permitted);

// Returns an in-memory file, positioned at its start, with a BPF program that allows only the permitted system calls.
// bwrap loads the program into the kernel for the child that it starts.
absl::StatusOr<Descriptor> filter_program(Permitted permitted);

}  // namespace wl
