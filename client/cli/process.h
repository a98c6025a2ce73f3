// How this process runs beside others: until when, and with which share of the processors.
#pragma once

#include <cstdint>

#include "compiler/base/status.h"

namespace wl {

// Watches another process from now on, on a thread of its own. When that process ends (or has ended already), this
// process gets a SIGTERM and, if it still runs two seconds later, ends at once with exit code 6. InvalidArgument: the
// number cannot be the id of a process, or is a thread's id.
absl::Status end_with(int64_t process);
// Whether that process has ended, so that nobody uses what this one would still write. Thread-safe.
bool is_left_alone();

// From now on this thread, and the threads and processes that it starts, get only processor time that nothing else
// wants (Linux's policy SCHED_IDLE), and have the nice value 19. Call it before threads are started that do work.
// Unavailable: the system refuses.
absl::Status run_when_idle();

// From now on this thread, and what it starts, has the nice value 1: about the priority of other programs, so that
// kernels are timed as they run, but Linux counts its time apart from theirs. Call it before threads are started.
void run_with_share();

}  // namespace wl
