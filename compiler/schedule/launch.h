// The choices that every kind of kernel has: threads and compiler on CPUs, teams of threads on GPUs.
#pragma once

#include <string>

#include "compiler/kernel/kernel.h"
#include "compiler/schedule/space.h"

namespace wl {

void set_launch(Kernel& kernel, std::string name, const Schedule& schedule, const Machine& machine);

}  // namespace wl
