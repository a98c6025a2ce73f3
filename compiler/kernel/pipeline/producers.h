// Divides a loop's body into the instructions that fill buffers, which may run ahead for later iterations, and those
// that use the buffers.
#pragma once

#include <set>

#include "compiler/kernel/pipeline/pipeline.h"

namespace wl {

struct Producers {
  std::vector<Instr> copies;         // the asynchronous copies, each of which replaces a load and a store
  std::vector<Instr> loads, stores;  // the producers that no copy replaces: `loads` compute what `stores` store
  std::vector<Instr> uses;           // the instructions of the body that are not producers
  std::set<TileId> tiles;            // tiles that only the producers use
  bool own = true;                   // whether every thread reads from the buffers only elements that it stored itself
};

// Divides the body of a loop. Returns an Invalid error if the producers cannot run ahead of the other instructions.
absl::StatusOr<Producers> producers_of(const Kernel& kernel, const Instr& loop, const Pipeline& how);

}  // namespace wl
