// Candidates of the device check: of every workload, of the library of its product, and of the copy with which
// everything is compared.
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

// What a plan asks for.
struct Wishes {
  bool quick = false;              // small workloads
  int candidates = 12;             // of a workload, at most, beside the plans below
  std::vector<std::string> only;   // words of the names of workloads; empty: all
  std::vector<std::string> plans;  // lines "WORD PLAN": a plan for the workloads whose name has the word
  // The first seed and the number of random graphs whose groups are workloads too.
  std::pair<uint64_t, uint64_t> random = {};
};

// Whether a name has one of the words.
bool has_one_of(const std::string& name, const std::vector<std::string>& words);

// The candidates of a workload: the plans that were asked for; default schedules; then what the portfolio proposes
// before any measurement; and the first algorithms of the library for the target's family, where it takes the workload.
absl::StatusOr<std::vector<Candidate>> candidates_of(const DeviceWorkload& workload, const Graph& graph,
                                                     const Machine& machine, const Wishes& wishes);

// The copy kernel with which everything is compared: several forms with wide accesses and many of them in flight, of
// which the best counts.
Batch copy_batch(const Machine& machine, int64_t bytes);

}  // namespace wl
