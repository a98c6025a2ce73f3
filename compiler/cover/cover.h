// A cover says which ops of a graph share a kernel. Its groups together compute every output of the graph, in an order
// in which each group's inputs are computed before it. Every function that makes a cover takes a Work
// (compiler/base/work.h), which may be null; if the Work ends before the function does, the function returns the Work's
// status.
#pragma once

#include "compiler/base/work.h"
#include "compiler/domain/group.h"

namespace wl {

struct Cover {
  std::vector<Group> groups;
};

// Returns the cover with one kernel for each op. Views and constants are computed in every kernel that reads them. A
// cast that only one op reads shares that op's kernel where one kernel can do both. A view that no kernel can absorb is
// a kernel of its own. Reports compare with this cover.
absl::StatusOr<Cover> cover_one_per_op(const Graph& graph, const Machine& machine, Work* work = nullptr);

struct CoverMemo;  // defined in compiler/cover/values.h
struct GreedyOptions {
  bool contractions_alone = false;  // whether every contraction is a kernel of its own, like a library call
  CoverMemo* memo = nullptr;        // a cache of what is known about groups, from earlier covers for this machine
  Work* work = nullptr;
};
// Greedy fusion: merges producers with consumers, the pair that saves most bytes of memory traffic first. A merged
// group must be convex (no path leaves it and comes back) and one loop nest (analyze() accepts it), and must not repeat
// work (worthwhile() in legal.h).
absl::StatusOr<Cover> cover_greedy(const Graph& graph, const Machine& machine, const GreedyOptions& options = {});

// Returns the groups of `greedy`, which cover_greedy() made for the same graph and machine. Neighbours are stitched
// into one kernel (stitching.h) where the memory traffic that this saves exceeds what it adds, since blocks read some
// inputs repeatedly and spill values from their cache.
absl::StatusOr<Cover> cover_stitched(const Graph& graph, const Machine& machine, const Cover& greedy,
                                     Work* work = nullptr);

}  // namespace wl
