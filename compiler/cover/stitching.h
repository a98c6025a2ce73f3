// How one kernel computes a group: as one loop nest, as several loop nests that each block runs one after the other
// (domain/stitch.h), or, if the group has unconnected parts, as kernels side by side (domain/pack.h).
#pragma once

#include "compiler/base/work.h"
#include "compiler/domain/stitch.h"

namespace wl {

struct CoverMemo;  // values.h

struct StitchOptions {
  CoverMemo* memo = nullptr;  // keeps answers between calls, for groups with parts in common on one machine
  bool turns = true;          // whether blocks may walk a reduced axis in turns (carried.h)
  Work* work = nullptr;
};
// A domain of class kStitched. InvalidArgument, with the reason, when the group cannot be divided among blocks; the
// status of `work` when that ends.
absl::StatusOr<Domain> stitch(const Graph& group, const Machine& machine, const StitchOptions& options = {});
// Whether, for some choice of `stitch`, there are enough blocks for the machine, and what they read repeatedly and keep
// beyond the cache of a thread costs less than the `saved` bytes of memory traffic.
bool stitching_pays(const Graph& group, const Stitch& stitch, int64_t saved, const Machine& machine);
// The domain of the group: by analyze() if it is one loop nest, else by pack() (packing.h) if it has unconnected parts,
// else by stitch().
absl::StatusOr<Domain> analyze_group(const Graph& group, const Machine& machine);

}  // namespace wl
