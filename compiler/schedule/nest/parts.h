// Parts: a long reduction of few rows is divided among several blocks. Each block reduces its part of one loop and
// stores a partial result; in the next pass every block combines all partial results and continues with its part.
#pragma once

#include "compiler/plan/domain.h"
#include "compiler/schedule/space.h"

namespace wl {

// Iterations of a loop of `extent` that each of `parts` blocks has: a multiple of `step`; the last may have fewer.
int64_t share_of(int64_t extent, int64_t parts, int64_t step);
// Whether every part then has an iteration.
bool shares_out(int64_t extent, int64_t parts, int64_t step);

// Adds the axis reduction_blocks to a space with one block for each of `blocks` rows: 1, and larger powers of two until
// there are `wanted` blocks. Reductions that take less time than a second pass get no such axis.
void add_parts(Space& space, const Domain& domain, const Machine& machine, int64_t blocks, int64_t wanted);
// The least value of that axis that makes at least `wanted` blocks of `blocks`, else the largest; 1 without the axis.
int64_t parts_for(const Space& space, int64_t blocks, int64_t wanted);

// Adds the axis last_block_combines where nothing of a row follows its reduction, and there are counters enough for all
// rows: the last block of a row to arrive combines the partial results in the same pass.
void add_last(Space& space, const Graph& group, const Domain& domain, int64_t blocks);
// Adds the axis cluster where the machine has clusters: the blocks of a row are one cluster, and wait for each other at
// a cluster barrier after each phase instead of in another pass. Every such machine allows kMostCluster blocks.
inline constexpr int64_t kMostCluster = 8;
void add_cluster(Space& space, const Machine& machine);

// Whether a schedule's choices about parts may be combined.
bool may_join(const Schedule& schedule);

}  // namespace wl
