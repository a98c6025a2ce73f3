// Contractions on CPUs that multiply words in tile registers (Intel's AMX): the instruction `mma` on machines without
// lanes.
#pragma once

#include <optional>

#include "compiler/schedule/contract/dot.h"
#include "compiler/target/matrix.h"

namespace wl {

// The steps along k of a contraction in tile registers.
struct TileSteps {
  MatrixOp matrix = {};
  AtomId atom = -1;   // the atom (loop) along which the words of a step lie
  int64_t words = 1;  // words of a step; a divisor of the atom's extent in words, so that all steps are equal
};

// Returns the steps of a contraction that is computed with words (`dot`); nullopt where the target does not multiply
// such words in tile registers, or where rows, columns or depth would fill at most half of a register.
std::optional<TileSteps> tile_steps(const Graph& group, const Domain& domain, const Machine& machine,
                                    const std::optional<Dot>& dot);
// Whether the words of a step are neighbours in an operand in memory, so that tile registers are loaded from it without
// packing.
bool has_tile_rows(const Domain& domain, const Domain::Operand& operand, const Dot& dot, const TileSteps& steps);

// The rows of one tile register, and the most rows and vectors of a tile of sums. Such a tile takes all eight
// registers: four for sums and two for each factor.
inline constexpr int64_t kTileRegisterRows = 16, kMostTileRows = 32, kMostTileVectors = 2;

}  // namespace wl
