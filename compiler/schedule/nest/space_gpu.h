// Axes, rules and seeds that the spaces of loop nests on GPUs have in common.
#pragma once

#include <vector>

#include "compiler/schedule/space.h"

namespace wl {

int64_t power_of_two_from(int64_t n);  // the least power of two that is at least n
// Returns the most elements of a vector that one instruction of a thread can move and that is aligned in all reads and
// writes that are contiguous along the vectorised axis. Longer vectors are not offered, because they would be moved
// element by element.
int64_t aligned_vector(const Graph& group, const Domain& domain);

// Returns the axes vector, team and teams. `row`: number of elements along the vectorised axis. `vector`, `team`,
// `teams`: the first value of each axis.
std::vector<Axis> thread_axes(const Graph& group, int64_t row, int64_t vector, int64_t team, int64_t teams,
                              const Machine& machine);
// Returns the axis teams_share_reduction. `loops`: whether there is a reduced loop around the row.
Axis teams_share_axis(bool loops);
Axis stream_loads_axis(const Graph& group, const Domain& domain);
// Returns the axis persistent. `copies`: whether rows may be copied to shared memory ahead.
Axis persistent_axis(const Graph& group, const Domain& domain, const Machine& machine, bool copies);

// Whether a schedule is legal as to its threads (fits_block), its persistent blocks (may_persist), and its teams that
// share a reduction (may_share_reduction). `row`: the elements of one row that a team has. `bytes`: how many bytes are
// copied ahead for each of these elements. `longest`: the extent of the loop that teams may share.
bool fits_block(const Schedule& s, const Machine& machine, int64_t row);
bool may_persist(const Domain& domain, const Schedule& s, const Machine& machine, int64_t row, int64_t bytes);
bool may_share_reduction(const Schedule& s, int64_t longest);

// Adds the effects that choices have in all nests on GPUs: streaming loads and stores, which are those of neighbouring
// elements or of single ones, and min_blocks.
void add_nest_effects(Space& space, const Graph& group, const Domain& domain, const Machine& machine);

// busy_blocks: how many blocks keep all multiprocessors busy. most_blocks: rows are divided among blocks only as long
// as there are fewer blocks than this.
int64_t busy_blocks(const Machine& machine);
int64_t most_blocks(const Machine& machine);
// Adds the point as a seed with last_block_combines, which saves a launch; adds nothing if the space lacks this choice.
void add_last_block_seed(Space& space, Point point);

}  // namespace wl
