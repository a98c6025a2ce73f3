// How one kernel computes a group: as one loop nest, as several loop nests that each block runs one after the other
// (plan/stitch.h), or, if the group has unconnected parts, as kernels side by side (plan/pack.h).
#pragma once

#include "compiler/base/work.h"
#include "compiler/plan/stitch.h"

namespace wl {

struct CoverMemo;  // values.h

struct StitchOptions {
  CoverMemo* memo = nullptr;  // answers between calls for the same machine; groups with parts in common reuse them
  bool turns = true;          // without: no block walks a reduced axis in turns
  Work* work = nullptr;
};
// A domain of class kStitched. InvalidArgument, with the reason, when the group cannot be divided among blocks.
absl::StatusOr<Domain> stitch(const Graph& group, const Machine& machine, const StitchOptions& options = {});
// Whether, for some number of rows in a block, there are enough blocks for the machine, and their repeated reads and
// what they keep beyond the cache of a thread cost less than the `saved` bytes of memory traffic.
bool stitching_pays(const Graph& group, const Stitch& stitch, int64_t saved, const Machine& machine);
// The domain of the group: by analyze() if it is one loop nest, else by pack() (packing.h) if it has unconnected parts,
// else by stitch().
absl::StatusOr<Domain> analyze_group(const Graph& group, const Machine& machine);

}  // namespace wl
