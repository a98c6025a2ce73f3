// The choices that every kind of kernel has: threads and compiler on CPUs, teams of threads on GPUs; and how persistent
// blocks divide what there is.
#pragma once

#include <string>

#include "compiler/kernel/builder.h"
#include "compiler/schedule/space.h"

namespace wl {

void set_launch(Kernel& kernel, std::string name, const Schedule& schedule, const Machine& machine);

// How many of `count` pieces a block has, where `blocks` of them, at least one, take every so many-th, from their own
// number, `place`, on.
Affine turns_of_block(KernelBuilder& out, const Affine& place, int64_t count, int64_t blocks);

}  // namespace wl
