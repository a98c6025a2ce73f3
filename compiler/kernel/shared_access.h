// Which accesses of a kernel to shared memory, or to what a block has of device memory for itself (Level::kOwn), touch
// the same elements; used by the code that orders them (barriers.h).
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

// The slice by which an instruction may access shared memory; for an asynchronous copy this is its destination.
const Slice& shared_slice(const Instr& instr);
bool accesses_shared(const Kernel& kernel, const Instr& instr);

// Whether two accesses may touch the same element from different threads, and at least one of them is a store.
bool hazard(const Kernel& kernel, const SharedAccess& earlier, const SharedAccess& later);

// Whether an access may touch destination elements of an asynchronous copy that has not arrived yet.
bool uses_unfinished(const Kernel& kernel, const SharedAccess& copy, const SharedAccess& access);

// Whether every thread accesses the same elements in both accesses to a shared buffer, and no other thread accesses
// these. This holds if both have the same slice, apart from the slot of a ring buffer, and the same layout, and no two
// threads hold the same element in that layout.
bool accesses_own(const Kernel& kernel, const Instr& a, const Instr& b);

}  // namespace wl
