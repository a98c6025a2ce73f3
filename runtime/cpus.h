// The CPUs on which threads run.
#pragma once

#include <vector>

namespace wl {

// Returns the CPUs on which this process may run: first one hardware thread of each core, then the other hardware
// threads.
std::vector<int> allowed_cpus();

// Pins the calling thread to these CPUs. Where pinning is forbidden, nothing happens, and the operating system's
// scheduler places the thread.
void run_on(const std::vector<int>& cpus);

// Moves the calling thread to a CPU that is none of these, and returns whether it did. The thread may run on the same
// CPUs afterwards as before.
bool leave(const std::vector<int>& cpus);

}  // namespace wl
