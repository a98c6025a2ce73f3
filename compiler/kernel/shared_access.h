// Which accesses of a kernel to shared memory touch the same elements; for those who order them (barriers.h).
#pragma once

#include <cstdint>
#include <map>

#include "compiler/kernel/kernel.h"

namespace wl {

// An access to shared memory, the iteration that each loop around it is in, which threads it is of, and its number in
// the order of execution.
struct SharedAccess {
  Instr instr;
  std::map<VarId, int64_t> iterations;
  Role role = Role::kTeams;
  int64_t number = 0;
};

// Where an instruction accesses memory that may be shared: the destination of an asynchronous copy.
const Slice& shared_slice(const Instr& instr);
bool accesses_shared(const Kernel& kernel, const Instr& instr);

// Two accesses may touch one element from different threads, and one of them stores.
bool hazard(const Kernel& kernel, const SharedAccess& earlier, const SharedAccess& later);

// The access may touch elements of an asynchronous copy that has not arrived.
bool uses_unfinished(const Kernel& kernel, const SharedAccess& copy, const SharedAccess& access);

// Of two accesses to one shared buffer: whether every thread accesses the elements that it accessed before, and no
// others do: the same place, of whatever slot of a ring, in the same layout, spread over the team.
bool accesses_own(const Kernel& kernel, const Instr& a, const Instr& b);

}  // namespace wl
