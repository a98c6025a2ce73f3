// Places barriers in kernels. Lowering writes none, because they follow from the hazards on shared memory: two accesses
// to the same buffer, or to two buffers that share memory, need a barrier between them if at least one of them is a
// store. There are two exceptions. Both accesses may have the same slice and the same layout, in which every element is
// accessed by one thread only. Or the accesses may be known to use different slots of a ring buffer, which consists of
// equal slots selected by a derived variable, (affine) % slots. The analysis walks two iterations of each loop, so that
// the accesses of the second meet those of the first, and one more for every further slot of a ring buffer that
// advances with the loop. No thread may access the destination of an asynchronous copy between the start of the copy
// and the wait for it; after the wait the destination counts as stored by the thread that waited. Accesses of copier
// threads and of teams to the same elements are ordered by phases, which roles.h checks.
#pragma once

#include "compiler/kernel/kernel.h"

namespace wl {

// Inserts a barrier before every access that needs one, replaces the barriers in a loop by one barrier before the loop
// where that is enough, then removes the barriers that no hazard needs.
void insert_barriers(Kernel& kernel);

// Returns an internal error that names both instructions if there is no barrier between the two accesses of a hazard,
// and an internal error if a barrier is in a loop whose number of iterations differs between teams.
absl::Status check_barriers(const Kernel& kernel);

}  // namespace wl
