// What every kind of kernel reads from a schedule: threads and compiler, or teams of lanes.
#pragma once

#include <string>

#include "compiler/kernel/kernel.h"
#include "compiler/schedule/space.h"

namespace wl {

void set_launch(Kernel& kernel, std::string name, const Schedule& schedule, const Machine& machine);

}  // namespace wl
