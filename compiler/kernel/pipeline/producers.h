// What of a loop's body fills buffers that later iterations may fill ahead, and what uses them.
#pragma once

#include <set>

#include "compiler/kernel/pipeline/pipeline.h"

namespace wl {

struct Producers {
  std::vector<Instr> copies;         // asynchronous
  std::vector<Instr> loads, stores;  // through registers: everything up to the stores, and those
  std::vector<Instr> uses;           // the rest of the body
  std::set<TileId> tiles;            // that the producers have for themselves
  bool own = true;                   // threads read what they filled themselves, and nothing else
};

// Takes the body of a loop apart; invalid where its producers cannot run ahead of the rest.
absl::StatusOr<Producers> producers_of(const Kernel& kernel, const Instr& loop, const Pipeline& how);

}  // namespace wl
