// Products of words in tile registers (the instruction `mma` on machines without lanes).
#pragma once

#include <optional>

#include "compiler/schedule/contract/dot.h"
#include "compiler/target/matrix.h"

namespace wl {

// The steps of such a product along k.
struct TileSteps {
  MatrixOp matrix = {};
  AtomId atom = -1;   // along which the words of a step lie
  int64_t words = 1;  // of a step: they divide the extent of the atom, in words, so that no step has fewer
};

// Of a contraction that is computed with words; nullopt where the target does not multiply them in registers, or where
// half of a register would be empty.
std::optional<TileSteps> tile_steps(const Graph& group, const Domain& domain, const Machine& machine,
                                    const std::optional<Dot>& dot);
// Whether the words of a step are neighbours in an operand, so that registers are loaded from it as it is.
bool has_tile_rows(const Domain& domain, const Domain::Operand& operand, const Dot& dot, const TileSteps& steps);

// The most rows and columns of a tile of sums: four registers of them, with two of either factor, are all there are.
inline constexpr int64_t kTileRegisterRows = 16, kMostTileRows = 32, kMostTileVectors = 2;

}  // namespace wl
