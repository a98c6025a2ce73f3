// Which accesses of a kernel to shared memory touch the same elements; used by the code that orders them (barriers.h).
#pragma once

#include <cstdint>
#include <map>

#include "compiler/kernel/kernel.h"

namespace wl {

// An access to shared memory: its instruction, the iteration that each loop around it is in (where that is known), the
// role of its threads, and its number in the order of execution.
struct SharedAccess {
  Instr instr;
  std::map<VarId, int64_t> iterations;
  Role role = Role::kTeams;
  int64_t number = 0;
};

// The slice through which an instruction accesses memory that may be shared: of an asynchronous copy, its destination.
const Slice& shared_slice(const Instr& instr);
bool accesses_shared(const Kernel& kernel, const Instr& instr);

// Whether two accesses may touch one element from different threads, and at least one of them stores.
bool hazard(const Kernel& kernel, const SharedAccess& earlier, const SharedAccess& later);

// Whether an access may touch elements of an asynchronous copy, which has not arrived yet.
bool uses_unfinished(const Kernel& kernel, const SharedAccess& copy, const SharedAccess& access);

// Whether, in two accesses to one shared buffer, every thread accesses the same elements both times, and no other
// thread does: both have the same slice, up to the slot of a ring, and the same layout, which gives every thread
// elements of its own.
bool accesses_own(const Kernel& kernel, const Instr& a, const Instr& b);

}  // namespace wl
