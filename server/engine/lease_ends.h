// Why leases end without a report, and what follows for the batch. A worker that is preempted, drained or restarted
// says nothing about the candidates that it had; a worker that vanishes says little. So a batch with which workers were
// lost is cut in halves until a single candidate is left. That is given up when more than one worker was lost over it,
// where there is more than one, and so often that it would be a strange chance among workers that are lost as often as
// these.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace wl {

enum class LeaseEnd {
  kReleased,    // the worker gave it back: it is preempted or drained
  kUnable,      // the worker gave it back because it cannot do it
  kExpired,     // nothing was heard of the worker, or of progress, for the term of the lease
  kSuperseded,  // a newer process took the name of the worker
  kOverdue,     // the worker goes on, but has had it for too long (overdue.h)
};

inline constexpr const char* kLeaseEndNames[] = {"released", "unable", "expired", "superseded", "overdue"};

// What to do with a batch after a lease has ended.
enum class LossVerdict {
  kAgain,    // it is ready for another worker
  kSplit,    // its halves take its place
  kCondemn,  // its only candidate has failed
};

// What speaks against a batch.
struct Evidence {
  std::vector<std::string> lost_on;  // names of the workers that were lost with it, one for each loss
  size_t candidates = 0;
  size_t others = 0;      // live workers that could run it and were not lost with it
  double usual_loss = 0;  // the part of all other leases that ended with a lost worker
};
LossVerdict verdict_on(const Evidence& evidence);

}  // namespace wl
