// Passes over a GPU kernel that change how its data moves and nothing else.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/plan/domain.h"

namespace wl {

// By tile, how many instructions of the kernel make or change it.
std::vector<int> times_made(const Kernel& kernel);
// Whether an instruction loads elements of an input of the kernel.
bool loads_input(const Kernel& kernel, const Instr& instr);
// The loop of the kernel's body with this variable; the end of the body where it has none.
std::vector<Instr>::iterator find_loop(Kernel& kernel, VarId var);

// Makes loads of inputs that the kernel reads once streaming loads.
void stream_loads(Kernel& kernel, const Graph& group, const Domain& domain);

// Moves loads that are the same in every iteration of `loop`, a loop of the kernel's body, before it, as long as the
// registers of a thread hold both the loaded values and those of the loop itself.
void hoist_loads(Kernel& kernel, VarId loop);

// Moves loads of inputs that are the same in every iteration of such a loop, and what is computed from those alone,
// before it.
void hoist_same(Kernel& kernel, VarId loop);

}  // namespace wl
