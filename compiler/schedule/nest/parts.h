// Parts: a long reduction of few rows, shared by several blocks. Each block folds its share of one loop; in the next
// pass all of them combine what they left and go on, each with its share of the row.
#pragma once

#include "compiler/plan/domain.h"
#include "compiler/schedule/space.h"

namespace wl {

// Turns of a loop of `extent` that each of `parts` blocks has, the last one perhaps fewer: a multiple of `step`.
int64_t share_of(int64_t extent, int64_t parts, int64_t step);
// Whether every part then has something to do.
bool shares_out(int64_t extent, int64_t parts, int64_t step);

// Adds the axis `parts` to a space in which a row is one block, `blocks` of them: 1, and on while those are fewer than
// `wanted`. Not where a reduction is over before another pass has begun.
void add_parts(Space& space, const Domain& domain, const Machine& machine, int64_t blocks, int64_t wanted);
// A value of that axis that makes `wanted` blocks of `blocks`, or the most there is; 1 without the axis.
int64_t parts_for(const Space& space, int64_t blocks, int64_t wanted);

// Where the results of a row are all that is left to do with it, and rows can be counted: whether the block of the row
// that has come last combines them, in the same pass (axis `last`).
void add_last(Space& space, const Graph& group, const Domain& domain, int64_t blocks);
// Where the machine has clusters: whether the parts of a row are one (at most kMostCluster, as many as every such
// machine takes), and go on together after each phase instead of in another pass.
inline constexpr int64_t kMostCluster = 8;
void add_cluster(Space& space, const Machine& machine);

// What the axes of parts allow together.
bool may_join(const Schedule& schedule);

}  // namespace wl
