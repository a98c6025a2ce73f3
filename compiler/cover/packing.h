// Divides a group into unconnected parts, which one kernel computes side by side (plan/pack.h).
#pragma once

#include "compiler/plan/pack.h"

namespace wl {

struct CoverMemo;  // values.h

// A domain of class kPacked. InvalidArgument, with the reason, when the group is connected, a part of it is not a legal
// group, or no number of threads suits all parts. `memo`: see stitch().
absl::StatusOr<Domain> pack(const Graph& group, const Machine& machine, CoverMemo* memo = nullptr);
// Whether the group has several parts that exchange no values. Inputs, constants and iotas do not connect parts.
bool is_unconnected(const Graph& group);

}  // namespace wl
