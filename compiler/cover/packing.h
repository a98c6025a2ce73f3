// Divides a group into its unconnected parts, which one kernel computes side by side (domain/pack.h).
#pragma once

#include "compiler/cover/stitching.h"
#include "compiler/domain/pack.h"

namespace wl {

// Returns a domain of class kPacked. InvalidArgument, with the reason: the group is connected, a part of it is not a
// legal group, or no number of threads suits all parts.
absl::StatusOr<Domain> pack(const Graph& group, const Machine& machine, const StitchOptions& options = {});
// Whether the group has several parts that exchange no values. Inputs, constants and iotas do not connect parts.
bool is_unconnected(const Graph& group);

}  // namespace wl
