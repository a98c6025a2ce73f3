// Confirming the winner of a promotion: other workers build it again, check it and time it beside the default schedule,
// and what they say is compared. Pure functions of trials (docs/design/trust.md#confirmation).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/jobs/search.h"

namespace wl {

// What one worker says of a kernel.
struct Claim {
  int64_t phase = 0;
  std::string worker;  // its name; empty: its trial was given up, and nobody says it
  Trial winner;
  std::optional<Trial> standard;  // the default schedule in the same rounds; none: it was not right, or is the winner
};

// Every claim on a plan: of the promotion `phase`, then of its confirmations.
std::vector<Claim> claims_on(const std::string& plan, const std::string& default_plan, int64_t phase,
                             const std::vector<PhaseTrial>& all);

// How close the times of two workers have to be.
enum class Closeness {
  kSameTime,  // within what machines of one kind differ by
  kSameOrder  // as far apart as load makes them; but a kernel that is faster than the default schedule for one of them
              // is not slower for the other
};

// Why two workers do not say the same of a kernel, for people; empty when they do: both found it right, built the same
// bytes, and their times are close.
std::string difference(const Claim& a, const Claim& b, Closeness closeness);

// Why a worker is wrong when two others agree, for people; empty when it may be right: load makes its times longer, and
// nothing makes them shorter.
std::string refutation(const Claim& claim, const Claim& first, const Claim& second);

// The first two claims that agree, as indices.
std::optional<std::pair<size_t, size_t>> agreed(const std::vector<Claim>& claims, Closeness closeness);

// The batch of a confirmation: the winner and the default schedule, with a check of its own.
absl::StatusOr<Round> confirming_round(const SearchInput& input, int64_t phase,
                                       const std::vector<PlannedTrial>& candidates, uint64_t check_seed);

// The record, with what two workers agreed on: measured by the one whose samples took longer, confirmed by the other,
// so that neither can make a kernel look faster than the other has seen it.
void confirm(const Claim& first, const Claim& second, KernelRecord* record);

}  // namespace wl
