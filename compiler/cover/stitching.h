// How one kernel computes a group: as one loop nest, as several loop nests that each block runs one after the other
// (domain/stitch.h), or, for a group with unconnected parts, as kernels side by side (domain/pack.h).
#pragma once

#include "compiler/base/work.h"
#include "compiler/domain/stitch.h"

namespace wl {

struct CoverMemo;  // defined in compiler/cover/values.h

struct StitchOptions {
  CoverMemo* memo = nullptr;  // a cache of what is known about groups, kept between calls for one machine
  bool turns = true;          // whether choices may have blocks that iterate over parts of a reduced axis (carried.h)
  // Which levels the values of a block may have (levels.h): scratch only; others where a block's values do not fit into
  // scratch; or all of them.
  enum class Levels : uint8_t { kScratch, kNeeded, kAll } levels = Levels::kAll;
  Work* work = nullptr;
};
// Returns a domain of class kStitched. InvalidArgument, with the reason: the group cannot be divided among blocks. If
// `work` ends first, its status is returned.
absl::StatusOr<Domain> stitch(const Graph& group, const Machine& machine, const StitchOptions& options = {});
// Whether some choice of `stitch` has enough blocks for the machine and adds less memory traffic than it saves (`saved`
// bytes). Traffic is added where blocks read inputs repeatedly, and where kept values exceed the cache of a thread.
bool stitching_pays(const Graph& group, const Stitch& stitch, int64_t saved, const Machine& machine);
// Returns the domain of the group: that of analyze() if it is one loop nest, else that of pack() (packing.h) if it has
// unconnected parts, else that of stitch().
absl::StatusOr<Domain> analyze_group(const Graph& group, const Machine& machine);

}  // namespace wl
