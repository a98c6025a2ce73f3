// Spaces of machines with lanes: how many threads work on a row, how many rows a block has, how wide a thread's loads
// are, and where a row stays between the phases of its reductions.
#pragma once

#include "compiler/plan/space_common.h"

namespace wl {

// Elements along each side of the square that a block stages in shared memory, and threads of its teams.
inline constexpr int64_t kStagedSide = 32;

// Occupancy: blocks that a multiprocessor is to have registers for, 0: as many as the compiler's choice leaves; and
// whether so many blocks of so many threads can be.
Axis blocks_axis();
bool may_reside(int64_t blocks, int64_t threads, const Gpu& gpu);

// Maps and column reductions: a team owns a tile along the vector atom.
Space space_team_tiles(const Graph& group, const Domain& domain, const Machine& machine);
// Row reductions: a team owns a row.
Space space_team_rows(const Graph& group, const Domain& domain, const Machine& machine);
// Contractions: a block owns a tile of rows x columns, a thread a register tile of it.
Space space_team_contract(const Graph& group, const Domain& domain, const Machine& machine);
// Of such a contraction: 32-bit registers of a thread that computes with elements of so many words, and bytes of shared
// memory of a block, whose elements have so many bytes.
int64_t contract_registers(const Schedule& schedule, int64_t words);
int64_t contract_shared(const Schedule& schedule, int64_t bytes);

}  // namespace wl
