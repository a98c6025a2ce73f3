// What the spaces of loop nests on GPUs have in common.
#pragma once

#include <vector>

#include "compiler/schedule/space.h"

namespace wl {

int64_t power_of_two_from(int64_t n);  // the least power of two that is at least n
// The widest vector that a thread can load at once and that is aligned wherever the group reads or writes along the
// vector atom: others would be moved element by element.
int64_t aligned_vector(const Graph& group, const Domain& domain);

// The axes vector, team and teams, with the values that are tried first. row: elements along the vector atom.
std::vector<Axis> thread_axes(const Graph& group, int64_t row, int64_t vector, int64_t team, int64_t teams,
                              const Machine& machine);
// loops: whether there is a reduced loop around the row.
Axis teams_share_axis(bool loops);
Axis stream_loads_axis(const Graph& group, const Domain& domain);
// copies: whether rows may be copied to shared memory ahead.
Axis persistent_axis(const Graph& group, const Domain& domain, const Machine& machine, bool copies);

// Rules of legal schedules. row: elements of one row that a team has; bytes: copied ahead for each of them; longest:
// the extent of the loop that teams may share.
bool fits_block(const Schedule& s, const Machine& machine, int64_t row);
bool may_persist(const Domain& domain, const Schedule& s, const Machine& machine, int64_t row, int64_t bytes);
bool may_share_reduction(const Schedule& s, int64_t longest);

// The number of blocks that keeps every multiprocessor busy; and the number beyond which rows are not divided further.
int64_t busy_blocks(const Machine& machine);
int64_t most_blocks(const Machine& machine);
// Adds a seed with the choice last_block_combines where the space has it: it saves a launch.
void add_last_block_seed(Space& space, Point point);

}  // namespace wl
