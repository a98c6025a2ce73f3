// A cover says which ops of a graph share a kernel. Its groups together compute every output of the graph, and are
// listed in an order in which the inputs of each exist. Every function that makes a cover takes a Work
// (compiler/base/work.h), which may be null; if the Work ends before the function does, the function returns the Work's
// status.
#pragma once

#include "compiler/base/work.h"
#include "compiler/domain/group.h"

namespace wl {

struct Cover {
  std::vector<Group> groups;
};

// The cover with one kernel for each op. Views and constants are computed in every kernel that reads them, and a cast
// that feeds one op only is computed with that op where one kernel can do both; a view that no kernel can absorb is a
// kernel of its own. Reports compare with this cover.
absl::StatusOr<Cover> cover_one_per_op(const Graph& graph, const Machine& machine, Work* work = nullptr);

struct CoverMemo;  // compiler/cover/values.h
struct GreedyOptions {
  bool contractions_alone = false;  // contractions are not merged with anything, as if each were a library call
  CoverMemo* memo = nullptr;        // answers from earlier covers on the same machine
  Work* work = nullptr;
};
// Greedy fusion: producers and consumers are merged, the pair that saves most bytes first, as long as the merged group
// is convex (no path leaves it and comes back), is one loop nest (analyze() accepts it) and repeats no work
// (worthwhile() in legal.h).
absl::StatusOr<Cover> cover_greedy(const Graph& graph, const Machine& machine, const GreedyOptions& options = {});

// The groups of `greedy`, which cover_greedy() made for the same graph and machine, with neighbours stitched into one
// kernel (stitching.h) where what the blocks read repeatedly or spill from their cache costs less than the memory
// traffic that is saved.
absl::StatusOr<Cover> cover_stitched(const Graph& graph, const Machine& machine, const Cover& greedy,
                                     Work* work = nullptr);

}  // namespace wl
