#include "server/jobs/confirm.h"

#include <algorithm>

namespace wl {
namespace {

// Two times of one kernel, on two machines of one kind under different load, differ by less than this factor.
constexpr double kFactor = 2;
// Two workers disagree if one of them finds a kernel faster than the default schedule by more than this share, and the
// other one finds it slower by more than this share.
constexpr double kShare = 0.1;

double time_of(const Trial& trial) {
  return undisturbed_ns(trial.samples_ns);
}

// Returns the winner's time as a multiple of the default schedule's; 0 if unknown.
double relative(const Claim& claim) {
  const double standard = claim.standard ? time_of(*claim.standard) : 0;
  return standard > 0 ? time_of(claim.winner) / standard : 0;
}

double factor(double a, double b) {
  return a > 0 && b > 0 ? std::max(a / b, b / a) : 0;
}

std::string said(const Claim& claim) {
  return cat(claim.worker.empty() ? "nobody" : shown_name(claim.worker), " says ",
             kOutcomeNames[static_cast<int>(claim.winner.outcome)], claim.winner.message.empty() ? "" : ": ",
             claim.winner.message);
}

std::string timed(const Claim& claim) {
  const std::string beside =
      claim.standard ? absl::StrFormat(" and %.0f ns for the default schedule", time_of(*claim.standard)) : "";
  return absl::StrFormat("%s measured %.0f ns%s", shown_name(claim.worker), time_of(claim.winner), beside);
}

// Returns why two claims cannot agree, whatever their times are: one is not correct or has no worker, both are of one
// principal, or the workers built different objects. Empty if none of these is the case.
std::string other_kernel(const Claim& a, const Claim& b) {
  for (const Claim* claim : {&a, &b})
    if (claim->winner.outcome != Outcome::kCorrect || claim->worker.empty()) return said(*claim);
  if (principal_of(a.worker) == principal_of(b.worker)) return cat("both are of ", shown_name(principal_of(a.worker)));
  if (a.winner.object_sha256 == b.winner.object_sha256) return "";
  return cat(shown_name(a.worker), " built the object ", a.winner.object_sha256, " and ", shown_name(b.worker),
             " built ", b.winner.object_sha256);
}

}  // namespace

std::vector<Claim> claims_on(const std::string& plan, const std::string& default_plan, int64_t phase,
                             const std::vector<PhaseTrial>& all) {
  std::vector<Claim> claims;
  for (const PhaseTrial& item : all)
    if (promotion_of(item.phase) == phase && item.trial.plan == plan)
      claims.push_back({item.phase, item.name(), item.trial, std::nullopt});
  std::sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) { return a.phase < b.phase; });
  for (Claim& claim : claims)
    for (const PhaseTrial& item : all)
      if (item.phase == claim.phase && item.trial.plan == default_plan && plan != default_plan &&
          item.name() == claim.worker && item.trial.outcome == Outcome::kCorrect)
        claim.standard = item.trial;
  return claims;
}

std::string difference(const Claim& a, const Claim& b, Closeness closeness) {
  if (std::string other = other_kernel(a, b); !other.empty()) return other;
  const double ra = relative(a), rb = relative(b);
  const bool far = closeness == Closeness::kSameTime && factor(time_of(a.winner), time_of(b.winner)) > kFactor;
  const auto turned = [](double one, double other) { return one > 0 && one < 1 - kShare && other > 1 + kShare; };
  if (far || turned(ra, rb) || turned(rb, ra)) return cat(timed(a), ", ", timed(b));
  return "";
}

std::string refutation(const Claim& claim, const Claim& first, const Claim& second) {
  if (std::string other = other_kernel(first, claim); !other.empty()) return other;
  const Claim& faster = time_of(first.winner) <= time_of(second.winner) ? first : second;
  return time_of(claim.winner) * kFactor < time_of(faster.winner) ? cat(timed(faster), ", ", timed(claim)) : "";
}

std::optional<std::pair<size_t, size_t>> agreed(const std::vector<Claim>& claims, Closeness closeness) {
  for (size_t second = 1; second < claims.size(); ++second)
    for (size_t first = 0; first < second; ++first)
      if (difference(claims[first], claims[second], closeness).empty()) return std::pair(first, second);
  return std::nullopt;
}

absl::StatusOr<Round> confirming_round(const SearchInput& input, int64_t phase,
                                       const std::vector<PlannedTrial>& candidates, uint64_t check_seed) {
  Round round = stored_round(input, phase, candidates);
  WL_ASSIGN_OR_RETURN(round.check, input.compiler->check(check_seed, input.work));
  return round;
}

void confirm(const Claim& first, const Claim& second, KernelRecord* record) {
  const bool second_slower = time_of(second.winner) > time_of(first.winner);
  const Claim& slower = second_slower ? second : first;
  record->measured_by = slower.worker;
  record->confirmed_by = second_slower ? first.worker : second.worker;
  record->object_sha256 = slower.winner.object_sha256;
  record->samples_ns = slower.winner.samples_ns;
  record->default_samples_ns = slower.standard                        ? slower.standard->samples_ns
                               : record->plan == record->default_plan ? slower.winner.samples_ns
                                                                      : record->default_samples_ns;
  record->max_error = slower.winner.max_error;
  record->bound = slower.winner.bound;
}

}  // namespace wl
