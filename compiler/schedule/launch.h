// What every kind of kernel has in common: threads and compiler on CPUs, teams of threads on GPUs, and how persistent
// blocks divide rows or tiles among themselves.
#pragma once

#include <string>

#include "compiler/kernel/builder.h"
#include "compiler/schedule/space.h"

namespace wl {

// Sets the kernel's name and, from the schedule, its threads and compiler or, on a GPU, its teams and resident blocks.
void set_launch(Kernel& kernel, std::string name, const Schedule& schedule, const Machine& machine);

// How many of `count` rows or tiles a persistent block computes. `blocks`: the number of such blocks, at least 1; the
// block whose number is `place` computes place, place + blocks, place + 2 * blocks, and so on.
Affine turns_of_block(KernelBuilder& out, const Affine& place, int64_t count, int64_t blocks);

}  // namespace wl
