// Passes over a GPU kernel that change how its data moves and nothing else.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/plan/domain.h"

namespace wl {

// Whether an expression changes with a variable, be it by way of derived ones.
bool depends_on(const Kernel& kernel, const Affine& affine, VarId var);

// Makes loads of inputs that the kernel reads once streaming loads.
void stream_loads(Kernel& kernel, const Graph& group, const Domain& domain);

// Moves loads that are the same in every iteration of `loop`, a loop of the kernel's body, before it, as long as the
// registers of a thread hold both the loaded values and those of the loop itself.
void hoist_loads(Kernel& kernel, VarId loop);

}  // namespace wl
