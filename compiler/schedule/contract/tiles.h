// Contractions that multiply words in tile registers (the instruction `mma` on machines without lanes).
#pragma once

#include <optional>

#include "compiler/schedule/contract/dot.h"
#include "compiler/target/matrix.h"

namespace wl {

// The steps of such a contraction along k.
struct TileSteps {
  MatrixOp matrix = {};
  AtomId atom = -1;   // the atom (loop) along which the words of a step lie
  int64_t words = 1;  // words of a step; they divide the atom's extent in words, so that no step has fewer
};

// The steps of a contraction that is computed with words (`dot`); nullopt where the target does not multiply such words
// in tile registers, or where half of a register or more would be empty.
std::optional<TileSteps> tile_steps(const Graph& group, const Domain& domain, const Machine& machine,
                                    const std::optional<Dot>& dot);
// Whether the words of a step are neighbours in an operand in memory, so that registers are loaded from it as it is.
bool has_tile_rows(const Domain& domain, const Domain::Operand& operand, const Dot& dot, const TileSteps& steps);

// The rows of one tile register, and the most rows and vectors of a tile of sums: four registers of sums and two of
// each factor are all registers that there are.
inline constexpr int64_t kTileRegisterRows = 16, kMostTileRows = 32, kMostTileVectors = 2;

}  // namespace wl
