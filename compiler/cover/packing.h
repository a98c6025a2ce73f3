// Cuts a group into parts that have nothing to do with each other, for one kernel that computes all (plan/pack.h).
#pragma once

#include "compiler/plan/pack.h"

namespace wl {

struct CoverMemo;  // values.h

// A domain of class kPacked. InvalidArgument, saying why, when the group is connected, a part of it is no legal group,
// or no number of threads suits all. `memo`: as stitch() takes it.
absl::StatusOr<Domain> pack(const Graph& group, const Machine& machine, CoverMemo* memo = nullptr);
// Whether no value leads from one part of the group to the rest; inputs, constants and iotas join nothing.
bool is_unconnected(const Graph& group);

}  // namespace wl
