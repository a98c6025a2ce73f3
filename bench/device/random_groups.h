// Groups of random graphs as workloads of the device check: small, of all ops and dtypes, to be right and not fast.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/device/plans.h"
#include "compiler/target/target.h"

namespace wl {

// The groups of the greedy covers of random graphs with these seeds. Their op is kRandomGroup, they have no shape.
inline constexpr const char* kRandomGroup = "random";
absl::StatusOr<std::vector<DeviceWorkload>> random_groups(uint64_t first, uint64_t count, const Machine& machine);

}  // namespace wl
