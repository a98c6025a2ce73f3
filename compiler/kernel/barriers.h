// Lowering writes no barriers: they follow from the hazards on shared buffers. Two accesses to one buffer, or to two
// that share memory, at least one of them a store, need a barrier between them. There are two exceptions: every thread
// accesses only elements that it stored itself (the same slice in the same layout), and the accesses are known to be in
// different slots of a ring buffer, one of as many equal slots as a derived variable, (affine) % slots, counts through.
// The analysis walks two iterations of each loop, so that the second meets the accesses of the first, and one more for
// every further slot of a ring that advances with the loop. No thread may access the destination of an asynchronous
// copy between its start and the wait for it; after the wait it counts as stored by the thread that waited. What
// copiers and teams do with the same elements needs phases, of which roles.h keeps account.
#pragma once

#include "compiler/kernel/kernel.h"

namespace wl {

// Puts a barrier before every access that needs one, moves barriers in front of loops where that is enough, then
// removes those that no hazard needs.
void insert_barriers(Kernel& kernel);

// Internal error naming the two instructions when a hazard has no barrier; also when a barrier is in a loop whose
// number of iterations differs between teams.
absl::Status check_barriers(const Kernel& kernel);

}  // namespace wl
