// How one kernel computes a group: as one loop nest, as several that a block runs one after the other (plan/stitch.h),
// or, of groups in unconnected parts, side by side (plan/pack.h).
#pragma once

#include "compiler/plan/stitch.h"

namespace wl {

struct CoverMemo;  // values.h

// A domain of class kStitched. InvalidArgument, saying why, when blocks cannot share the group so. `memo`
// (values.h): of earlier calls with this machine, which groups with parts in common have use for.
absl::StatusOr<Domain> stitch(const Graph& group, const Machine& machine, CoverMemo* memo = nullptr);
// Whether blocks of some number of rows are enough for the machine and what they read again, beyond the first time,
// costs less than `saved` bytes that went through memory.
bool stitching_pays(const Graph& group, const Stitch& stitch, int64_t saved, const Machine& machine);
// analyze(), or else stitch() or, of groups in unconnected parts, pack() (packing.h): how one kernel computes the
// group.
absl::StatusOr<Domain> analyze_group(const Graph& group, const Machine& machine);

}  // namespace wl
