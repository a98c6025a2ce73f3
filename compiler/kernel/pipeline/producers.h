// Divides a loop's body into the instructions that fill buffers, which may run ahead for later iterations, and those
// that use the buffers.
#pragma once

#include <set>

#include "compiler/kernel/pipeline/pipeline.h"

namespace wl {

struct Producers {
  std::vector<Instr> copies;         // the asynchronous copies that replace producers
  std::vector<Instr> loads, stores;  // other producers: the instructions that compute what is stored, and the stores
  std::vector<Instr> uses;           // the instructions that are no producers
  std::set<TileId> tiles;            // tiles that only the producers use
  bool own = true;                   // whether every thread reads only buffer elements that it filled itself
};

// Divides the body of a loop. Returns an Invalid error if the producers cannot run ahead of the other instructions.
absl::StatusOr<Producers> producers_of(const Kernel& kernel, const Instr& loop, const Pipeline& how);

}  // namespace wl
