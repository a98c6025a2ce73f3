// Why leases end without a report, and what follows for the batch. A worker that is preempted, drained or restarted
// says nothing about its candidates, and one that vanishes says little. So a batch whose workers were lost is halved
// until single candidates are left. A single candidate is given up once several workers were lost with it: different
// workers if more than one can measure it, and so many that chance is an unlikely cause at the rate at which workers
// are lost with other leases (docs/design/service.md#lost-leases).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace wl {

enum class LeaseEnd {
  kReleased,  // the worker gave the batch back because it is preempted or drained
  kUnable,    // the worker gave the batch back because it cannot measure the batch
  // The lease was not renewed for its term or made no progress for too long, or the worker's connection was lost.
  kExpired,
  kSuperseded,  // a newer process of the worker has registered
  kOverdue,     // the worker renews the lease and reports progress, but has had the batch for too long (overdue.h)
};

inline constexpr const char* kLeaseEndNames[] = {"released", "unable", "expired", "superseded", "overdue"};

// What to do with a batch after a lease has ended.
enum class LossVerdict {
  kAgain,    // the batch becomes ready again, for another worker
  kSplit,    // the batch is replaced by its halves
  kCondemn,  // the batch's only candidate, or its chains, are stored as failed
};

// The facts from which the verdict on a batch follows.
struct Evidence {
  std::vector<std::string> lost_on;  // names of the workers that were lost while they had the batch, one for each loss
  size_t candidates = 0;
  size_t others = 0;      // number of live workers that could measure the batch and were not lost with it
  double usual_loss = 0;  // estimated share of all other leases that end with a lost worker
};
LossVerdict verdict_on(const Evidence& evidence);

}  // namespace wl
