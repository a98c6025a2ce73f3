// Candidates of the device check: generated kernels and library calls for a workload, and the copy kernels with which
// every workload is compared.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/device/plans.h"
#include "compiler/base/records.h"
#include "compiler/ir/graph.h"
#include "compiler/target/target.h"

namespace wl {

// The options of `device_check plan`.
struct Wishes {
  bool quick = false;              // whether to use the small workloads
  int candidates = 12;             // largest number of candidates of each workload, besides those of `plans`
  std::vector<std::string> only;   // words, one of which the name of a workload must contain; empty: all workloads
  std::vector<std::string> plans;  // lines "WORD PLAN": a plan for the workloads whose name contains WORD
  // The first seed and the number of random graphs whose groups become workloads.
  std::pair<uint64_t, uint64_t> random = {};
};

// Returns whether `name` contains at least one of `words`.
bool has_one_of(const std::string& name, const std::vector<std::string>& words);

// Returns the candidates of a workload, in this order: the plans in wishes.plans, the default schedules, the first
// proposals of the portfolio strategy, and the first algorithms of the kernel library for the target's family, if it
// computes the workload.
absl::StatusOr<std::vector<Candidate>> candidates_of(const DeviceWorkload& workload, const Graph& graph,
                                                     const Machine& machine, const Wishes& wishes);

// Returns copy kernels with wide accesses and several loads in flight. Each reads and writes `bytes` bytes in all. The
// rate of the fastest one is what every workload is compared with.
Batch copy_batch(const Machine& machine, int64_t bytes);

}  // namespace wl
