// Identifies the CPU, for the keys of caches of machine code on disks that several machines share.
#pragma once

#include <string>

namespace wl {

// Returns the CPU's architecture, its model and a digest of its features, by uname() and /proc/cpuinfo. Machines with
// equal texts run each other's code equally well. The text is read once per process.
const std::string& cpu_identity();

}  // namespace wl
