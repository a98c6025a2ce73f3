// Verification of kernels that were made with other compilers or another driver: what is measured, and what follows
// from the measurements. Pure functions (docs/design/service.md#verifying-winners-again).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/jobs/job_plan.h"

namespace wl {

// The group of a record, to be searched in another environment of the same device.
struct Winner {
  PlannedGroup group;
  bool cold = false;  // whether the group is timed with cold caches
};
// Returns the group of a record. FailedPrecondition: in this version the group has another key than the record, so no
// job would ask for the record. Other errors: the record's graph cannot be parsed.
absl::StatusOr<Winner> winner_of(const KernelRecord& record, const Device& device);

// Returns the outcome of verifying a record again. `now`: the record of its key in the new environment. `trials`: the
// trials of the search in that environment. `why`: for people, why that search ended without a record.
struct ReverifiedAs {
  Reverified outcome = Reverified::kLost;
  std::string message;
};
ReverifiedAs reverified_as(const KernelRecord& before, const std::optional<KernelRecord>& now,
                           const std::vector<PhaseTrial>& trials, const std::string& why);

// Returns the result of a job that verified the groups of the plan again. It has the groups that now have a record.
absl::StatusOr<JobResult> reverified_result(JobPlan plan, const Records& records,
                                            const std::set<std::string>& transferred);

}  // namespace wl
