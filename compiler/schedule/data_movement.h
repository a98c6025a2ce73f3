// Passes over a kernel of a machine with lanes that change how its data moves and nothing else.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/plan/domain.h"

namespace wl {

// Loads of inputs that the kernel reads once become streaming.
void stream_loads(Kernel& kernel, const Graph& group, const Domain& domain);

// Loads of inputs that are the same in every turn of `loop`, which stands in the kernel's body, go before it: as many
// as leave a lane registers for what the loop itself holds.
void hoist_loads(Kernel& kernel, VarId loop);

}  // namespace wl
