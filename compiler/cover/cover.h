// The cover: which ops share a kernel. A cover computes every output of the whole graph; its groups are listed in an
// order in which their inputs exist.
#pragma once

#include "compiler/plan/group.h"

namespace wl {

struct Cover {
  std::vector<Group> groups;
};

// One kernel per op: views, constants and casts that only feed one op go with it; a view that nothing can absorb is a
// kernel of its own. The default that every report compares with.
absl::StatusOr<Cover> cover_one_per_op(const Graph& graph, const Machine& machine);

struct CoverMemo;  // compiler/cover/values.h
struct GreedyOptions {
  bool contractions_alone = false;  // nothing is merged with one: as if libraries were called for them
  CoverMemo* memo = nullptr;        // of earlier covers on the same machine
};
// Sound greedy fusion: producers and consumers are merged, best saving of bytes first, while the group stays convex and
// analyze() accepts it.
absl::StatusOr<Cover> cover_greedy(const Graph& graph, const Machine& machine, const GreedyOptions& options = {});

// The groups of cover_greedy, neighbours of which are stitched (stitching.h) where what blocks then read again costs
// less than what went through memory.
absl::StatusOr<Cover> cover_stitched(const Graph& graph, const Machine& machine, const Cover& greedy);

}  // namespace wl
