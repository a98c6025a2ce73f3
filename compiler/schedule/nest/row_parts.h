// Parts of rows: where rows are few and long, each reduction is divided among several blocks. Each block reduces its
// part of one loop and stores a partial result. In the next pass (sweep over the grid) every block combines all partial
// results of its row and continues with its part.
#pragma once

#include "compiler/domain/domain.h"
#include "compiler/schedule/space.h"

namespace wl {

// Returns how many of a loop's `extent` iterations each of `parts` blocks has: a multiple of `step`, where the last
// block may have fewer.
int64_t share_of(int64_t extent, int64_t parts, int64_t step);
// Whether every part has at least one iteration if each part but the last has share_of() iterations.
bool shares_out(int64_t extent, int64_t parts, int64_t step);

// Adds the axis reduction_blocks. Its values are 1 and larger powers of two, at most up to the first one with which
// there are `wanted` blocks or more; `blocks` is the number of blocks with the value 1. Adds no axis for reductions
// that take less time than a second pass.
void add_parts(Space& space, const Domain& domain, const Machine& machine, int64_t blocks, int64_t wanted);
// Returns the least value of reduction_blocks with which there are at least `wanted` blocks, or the largest value if
// all give fewer; 1 if the space lacks the axis. `blocks` is the number of blocks with the value 1.
int64_t parts_for(const Space& space, int64_t blocks, int64_t wanted);

// Adds the axis last_block_combines: the block of a row that arrives last combines the partial results in the same
// pass. The axis is added only if no further phase follows a row's reductions, and if the workspace has at least
// `blocks` counters of arrivals. `blocks`: an upper bound of the kernel's number of blocks if rows have no parts.
void add_last(Space& space, const Graph& group, const Domain& domain, int64_t blocks);
// Adds the axis cluster where the machine has clusters: the blocks of a row form one cluster, and wait for each other
// at a cluster barrier after each phase instead of starting another pass. Every machine with clusters allows
// kMostCluster blocks in one.
inline constexpr int64_t kMostCluster = 8;
void add_cluster(Space& space, const Machine& machine);

// Whether a schedule combines its values of reduction_blocks, last_block_combines and cluster legally.
bool may_join(const Schedule& schedule);

}  // namespace wl
