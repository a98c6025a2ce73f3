// The cover: which ops share a kernel. A cover computes every output of the whole graph; its groups are listed in an
// order in which their inputs exist. All functions that make one take a Work, which may be null; if it ends before they
// do, its status is theirs.
#pragma once

#include "compiler/base/work.h"
#include "compiler/plan/group.h"

namespace wl {

struct Cover {
  std::vector<Group> groups;
};

// One kernel per op. Views, constants and casts that only feed one op are computed with it; a view that no kernel can
// absorb is a kernel of its own. Reports compare with this cover.
absl::StatusOr<Cover> cover_one_per_op(const Graph& graph, const Machine& machine, Work* work = nullptr);

struct CoverMemo;  // compiler/cover/values.h
struct GreedyOptions {
  bool contractions_alone = false;  // contractions are not merged with anything, as if each were a library call
  CoverMemo* memo = nullptr;        // answers from earlier covers on the same machine
  Work* work = nullptr;
};
// Greedy fusion: producers and consumers are merged, the pair that saves most bytes first, as long as the merged group
// is convex and analyze() accepts it.
absl::StatusOr<Cover> cover_greedy(const Graph& graph, const Machine& machine, const GreedyOptions& options = {});

// The groups of cover_greedy, with neighbours stitched into one kernel (stitching.h) where the blocks' repeated reads
// cost less than the memory traffic that is saved.
absl::StatusOr<Cover> cover_stitched(const Graph& graph, const Machine& machine, const Cover& greedy,
                                     Work* work = nullptr);

}  // namespace wl
