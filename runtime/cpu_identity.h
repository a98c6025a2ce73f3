// Identifies the CPU by a text. Caches of machine code that lie on disks shared by several machines have the text in
// their keys.
#pragma once

#include <string>

namespace wl {

// Returns the CPU's architecture, its model and a digest of its features, from uname() and /proc/cpuinfo. Machines with
// equal texts run each other's code equally well. The text is made once per process.
const std::string& cpu_identity();

}  // namespace wl
