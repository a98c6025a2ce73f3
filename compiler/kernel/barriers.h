// Places barriers in kernels. Lowering writes none, since they follow from the hazards on shared buffers: two accesses
// to one buffer, or to two that share memory, need a barrier between them if at least one of them is a store. There are
// two exceptions: every thread accesses the same elements both times, and no others do (the same slice in the same
// layout); or the accesses are known to be in different slots of a ring buffer, which has as many equal slots as a
// derived variable, (affine) % slots, counts through. The analysis walks two iterations of each loop, so that the
// second meets the accesses of the first, and one more for every further slot of a ring that advances with the loop. No
// thread may access the destination of an asynchronous copy between the start of the copy and the wait for it; after
// the wait the destination counts as stored by the thread that waited. What copiers and teams do with the same elements
// needs phases, of which roles.h keeps account.
#pragma once

#include "compiler/kernel/kernel.h"

namespace wl {

// Puts a barrier before every access that needs one, replaces the barriers in a loop by one in front of it where that
// is enough, then removes those that no hazard needs.
void insert_barriers(Kernel& kernel);

// An internal error that names the two instructions where a hazard has no barrier, and one where a barrier is in a loop
// whose number of iterations differs between teams.
absl::Status check_barriers(const Kernel& kernel);

}  // namespace wl
