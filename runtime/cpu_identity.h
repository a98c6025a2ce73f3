// Identifies the CPU. The text is part of the keys of caches of machine code on disks that several machines share.
#pragma once

#include <string>

namespace wl {

// Returns the CPU's architecture, its model and a digest of its features, from uname() and /proc/cpuinfo. Machines with
// equal texts run each other's code equally well. The text is made once per process.
const std::string& cpu_identity();

}  // namespace wl
