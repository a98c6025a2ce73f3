// Instructions of a loop's body for another iteration. What is new gets its number at the end: variables behind those
// that they come from, tiles in front of them, so that numbers grow as the text does.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/kernel/builder.h"

namespace wl {

// What takes the place of a loop's variable.
struct Iteration {
  VarId var = -1;
  Affine at;
};

class Rewrite {
 public:
  // The kernel must outlive this.
  explicit Rewrite(Kernel& kernel);

  // The derived variable (min(of...) / div) % mod, behind variable `beside` where there is none yet.
  Affine derived(std::string name, std::vector<Affine> of, int64_t div, int64_t mod, VarId beside);
  // The variable of a loop, behind `beside`.
  VarId loop_var(std::string name, VarId beside);
  // A tile like another one, in front of tile `before`.
  TileId like(TileId tile, TileId before);
  // The same at another iteration. Derived variables that depend on the loop's get others beside them.
  Affine moved(const Affine& from, const Iteration& to);
  Tile moved(Tile tile, const Iteration& to);
  Instr moved(Instr instr, const Iteration& to);
  // Drops derived variables that no instruction needs any more, and numbers everything in order.
  void finish();

 private:
  Kernel& kernel_;
  std::vector<bool> needed_;   // variables, before anything changed
  std::vector<VarId> beside_;  // by variable: itself, or the one that it stands behind
  std::map<TileId, TileId> in_front_of_;
};

// Calls visit(affine) for every affine expression of an instruction, without those of its body.
template <typename Visit>
void each_affine(Instr& instr, const Visit& visit) {
  visit(instr.slice.offset);
  visit(instr.into.offset);
  for (SliceGuard& guard : instr.guards) visit(guard.at);
  for (Affine& trips : instr.trips) visit(trips);
  visit(instr.parity);
}

}  // namespace wl
