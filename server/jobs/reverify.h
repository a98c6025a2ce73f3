// Verifying kernels again that other compilers or another driver made: what is measured, and what follows from it. Pure
// functions (docs/design/service.md#verifying-winners-again).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/jobs/job_plan.h"

namespace wl {

// The group of a record as it is searched in another environment of the same device.
struct Winner {
  PlannedGroup group;
  bool cold = false;  // how it is measured
};
// FailedPrecondition: this version knows the group by another key, so nobody asks for this one. Other errors: the graph
// of the record cannot be read.
absl::StatusOr<Winner> winner_of(const KernelRecord& record, const Device& device);

// What became of a record: `now` is what is served for its key in the new environment, `trials` are those of the search
// there, and `why` is what ended that search without a record, for people.
struct ReverifiedAs {
  Reverified outcome = Reverified::kLost;
  std::string message;
};
ReverifiedAs reverified_as(const KernelRecord& before, const std::optional<KernelRecord>& now,
                           const std::vector<PhaseTrial>& trials, const std::string& why);

// The answer of a job that verified the groups of the plan again: those that have a record now.
absl::StatusOr<JobResult> reverified_result(JobPlan plan, const Records& records,
                                            const std::set<std::string>& transferred);

}  // namespace wl
