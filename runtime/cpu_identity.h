// Which CPU this is, for caches of machine code on disks that several machines see.
#pragma once

#include <string>

namespace wl {

// The CPU's architecture and model, and a digest of what it can do, as the system says: the same on machines that run
// each other's code equally well, and constant while this process lives.
const std::string& cpu_identity();

}  // namespace wl
