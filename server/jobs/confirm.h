// Confirmation of a promotion's winner: other workers build it again, check it and time it beside the default schedule,
// and the claims of all are compared. Pure functions of trials (docs/design/trust.md#confirmation).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/jobs/search.h"

namespace wl {

// What one worker reported about a kernel.
struct Claim {
  int64_t phase = 0;
  std::string worker;  // the worker's name; empty: the trial was given up, so no worker reported it
  Trial winner;
  // Trial of the default schedule in the same rounds; nullopt: it was not correct, or it is itself the winner.
  std::optional<Trial> standard;
};

// Returns all claims on a plan: those of the promotion `phase`, then those of its confirmations, in order.
std::vector<Claim> claims_on(const std::string& plan, const std::string& default_plan, int64_t phase,
                             const std::vector<PhaseTrial>& all);

// How close the times of two workers must be. With either value, a kernel that is clearly faster than the default
// schedule for one worker must not be clearly slower for the other.
enum class Closeness {
  kSameTime,  // the times differ by no more than those of two machines of one kind may
  kSameOrder  // the times may differ by any factor, as they may under different load
};

// Returns, for people, why two workers disagree on a kernel; empty if they agree: they have different principals, both
// found the kernel correct and built the same object, byte for byte, and their times are close.
std::string difference(const Claim& a, const Claim& b, Closeness closeness);

// Returns, for people, why a worker's claim is wrong if two others agree: the worker has the principal of `first`,
// built another object, had another outcome, or was much faster. Empty if the claim may be right, such as one of a
// longer time: load makes times longer, never shorter.
std::string refutation(const Claim& claim, const Claim& first, const Claim& second);

// Returns the indices of the first two claims that agree.
std::optional<std::pair<size_t, size_t>> agreed(const std::vector<Claim>& claims, Closeness closeness);

// Returns the round of a confirmation: it measures the winner and the default schedule, with check data of its own.
absl::StatusOr<Round> confirming_round(const SearchInput& input, int64_t phase,
                                       const std::vector<PlannedTrial>& candidates, uint64_t check_seed);

// Sets the fields of the record that follow from two claims that agree. The worker with the longer times counts as the
// measurer and the other worker as the confirmer, so that no worker alone can make a kernel look faster than it is.
void confirm(const Claim& first, const Claim& second, KernelRecord* record);

}  // namespace wl
