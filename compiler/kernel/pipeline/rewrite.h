// Copies instructions of a loop's body for another iteration. New variables and tiles are renumbered at the end, so
// that numbers increase along the text: a new variable is numbered after the variables that it derives from, a new tile
// before the tile for which it was added.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/kernel/builder.h"

namespace wl {

// The iteration for which instructions are copied: `var` is the loop's variable, `at` the expression that replaces it.
struct Iteration {
  VarId var = -1;
  Affine at;
};

class Rewrite {
 public:
  // The kernel must outlive this object.
  explicit Rewrite(Kernel& kernel);

  // The derived variable (min(of...) / div) % mod. If it does not exist yet, it will be numbered behind variable
  // `beside`.
  Affine derived(std::string name, std::vector<Affine> of, int64_t div, int64_t mod, VarId beside);
  // A new loop variable, to be numbered behind `beside`.
  VarId loop_var(std::string name, VarId beside);
  // A new tile of the same type as `tile`, to be numbered in front of tile `before`.
  TileId like(TileId tile, TileId before);
  // Returns the expression, tile or instruction rewritten for another iteration. Derived variables that depend on the
  // loop's variable are replaced by new ones, each numbered behind the variable that it replaces.
  Affine moved(const Affine& from, const Iteration& to);
  Tile moved(Tile tile, const Iteration& to);
  Instr moved(Instr instr, const Iteration& to);
  // Drops derived variables that no instruction needs any more, and numbers all variables and tiles in order.
  void finish();

 private:
  Kernel& kernel_;
  std::vector<bool> needed_;   // for each variable of the original kernel: whether an instruction or tile used it
  std::vector<VarId> beside_;  // for each variable: the variable behind which it is numbered, or itself
  std::map<TileId, TileId> in_front_of_;
};

// Calls visit(affine) for every affine expression of an instruction, but not for those of the instructions in its
// body.
template <typename Visit>
void each_affine(Instr& instr, const Visit& visit) {
  visit(instr.slice.offset);
  visit(instr.into.offset);
  for (SliceGuard& guard : instr.guards) visit(guard.at);
  for (Affine& trips : instr.trips) visit(trips);
  visit(instr.parity);
}

}  // namespace wl
