// Why leases end without a report, and what follows for the batch. A worker that is preempted, drained or restarted
// says nothing about its candidates, and one that vanishes says little. So a batch with which workers were lost is
// halved until single candidates are left. A single candidate is given up after several losses: on more than one worker
// where there is another one, and so many that they are unlikely to be chance at the rate at which all other leases are
// lost (docs/design/service.md#lost-leases).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace wl {

enum class LeaseEnd {
  kReleased,    // the worker gave it back, since it is preempted or drained
  kUnable,      // the worker gave it back because it cannot do it
  kExpired,     // it was not renewed for its term, had no progress for too long, or the worker's connection was lost
  kSuperseded,  // a newer process took the name of the worker
  kOverdue,     // the worker renews it and reports progress, but has had it for too long (overdue.h)
};

inline constexpr const char* kLeaseEndNames[] = {"released", "unable", "expired", "superseded", "overdue"};

// What to do with a batch after a lease has ended.
enum class LossVerdict {
  kAgain,    // it is ready again, for another worker
  kSplit,    // its halves take its place
  kCondemn,  // its only candidate, or batch of chains, is stored as failed
};

// What the verdict on a batch follows from.
struct Evidence {
  std::vector<std::string> lost_on;  // names of the workers that were lost while they had it, one for each loss
  size_t candidates = 0;
  size_t others = 0;      // number of live workers that could run it and were not lost with it
  double usual_loss = 0;  // estimated share of all other leases that end with a lost worker
};
LossVerdict verdict_on(const Evidence& evidence);

}  // namespace wl
