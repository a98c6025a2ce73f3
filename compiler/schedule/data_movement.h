// Passes over a GPU kernel that change how data moves, but not the result.
#pragma once

#include "compiler/domain/domain.h"
#include "compiler/kernel/kernel.h"

namespace wl {

// Returns, for each tile, the number of instructions that define or change it.
std::vector<int> times_made(const Kernel& kernel);
// Whether an instruction loads elements of an input of the kernel.
bool loads_input(const Kernel& kernel, const Instr& instr);
// Returns the loop over the variable `var` that lies in the kernel's body but in no other loop; the end of the body if
// there is no such loop.
std::vector<Instr>::iterator find_loop(Kernel& kernel, VarId var);

// Turns the loads of an input into streaming loads if the kernel reads no element of this input twice.
void stream_loads(Kernel& kernel, const Graph& group, const Domain& domain);

// Moves loads of inputs from `loop`, a loop of the kernel's body, to the place before it. Moves only loads that load
// the same elements in every iteration, and only as many as the registers of a thread have room for beside the largest
// tile of the loop.
void hoist_loads(Kernel& kernel, VarId loop);

// Moves all loads of inputs that load the same elements in every iteration of `loop`, a loop of the kernel's body, to
// the place before it, together with the maps, packs and converts that need only these values and tiles made once
// before the loop. Does not count registers.
void hoist_same(Kernel& kernel, VarId loop);

}  // namespace wl
