// What verify() demands of a kernel's tiles: that their layouts fit the machine.
#pragma once

#include "compiler/kernel/kernel.h"

namespace wl {

// Every layout says of every element where it is (Layout::check), has no more lanes than a wave of a team and no more
// waves than a team, and, on machines without lanes, registers that follow one another along each axis.
absl::Status check_tiles(const Kernel& kernel);

}  // namespace wl
