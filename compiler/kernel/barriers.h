// Barriers are not written by lowering: they follow from the hazards on shared buffers. Two accesses to one buffer (or
// to two that share memory), at least one of them a store, need a barrier between them unless every thread meets only
// what it put there itself (the same slice under the same layout), or they are known to meet different slots of a ring:
// a buffer of as many equal parts as a derived variable, (affine) % parts, counts through. Loops are walked twice, so
// that the second iteration meets the first, and once more for every part of a ring that turns with them. What
// an asynchronous copy writes is touched by nobody between its sending and the wait that covers it; from then on it is
// as if the thread that waits had stored it.
#pragma once

#include "compiler/kernel/kernel.h"

namespace wl {

// Puts a barrier before every access that needs one, takes those out of loops that may stand before them, then takes
// away those without which no hazard returns.
void insert_barriers(Kernel& kernel);

// Internal error naming the two instructions when a hazard has no barrier; also when a barrier stands in a loop that
// teams leave at different times.
absl::Status check_barriers(const Kernel& kernel);

}  // namespace wl
