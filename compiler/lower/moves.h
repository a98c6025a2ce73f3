// Passes over a kernel of a machine with lanes that change how its data moves and nothing else.
#pragma once

#include "compiler/lower/kernel.h"
#include "compiler/plan/domain.h"

namespace wl {

// Loads of inputs that the kernel reads once become streaming.
void stream_loads(Kernel& kernel, const Graph& group, const Domain& domain);

}  // namespace wl
