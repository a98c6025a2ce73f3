// Groups of random graphs as workloads of the device check: small ones of all ops and dtypes, for correctness and not
// for speed.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/device/plans.h"
#include "compiler/target/target.h"

namespace wl {

// Returns the groups of the greedy covers of `count` random graphs with seeds from `first` on, as workloads with op
// kRandomGroup and an empty shape.
inline constexpr const char* kRandomGroup = "random";
absl::StatusOr<std::vector<DeviceWorkload>> random_groups(uint64_t first, uint64_t count, const Machine& machine);

}  // namespace wl
