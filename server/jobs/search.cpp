#include "server/jobs/search.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "compiler/base/sha256.h"
#include "compiler/search/nearest.h"

namespace wl {
namespace {

// Plans slower than the best one by more than this factor are promoted only if there are fewer than kFewestFinalists
// others. Trials of rounds are short and may have been disturbed, but even so such a plan would not win in a longer
// measurement, and each finalist costs another compilation and check.
constexpr double kMayWinWithin = 1.3;
constexpr size_t kFewestFinalists = 3;

// Finalists that are slower in the promotion than in the rounds by more than this factor were disturbed by other load.
constexpr double kDisturbed = 1.15;

std::vector<std::string> first_plans(const SearchInput& input, int n) {
  std::vector<std::string> plans;
  std::set<std::string> seen;
  const auto take = [&](const std::vector<std::string>& more) {
    for (const std::string& plan : more) {
      if (static_cast<int>(plans.size()) < n && seen.insert(plan).second) plans.push_back(plan);
    }
  };
  // Winning plans of similar groups come right after the default schedule.
  const std::vector<std::string> seeds = input.compiler->seeds();
  take({seeds.front()});
  take(input.near);
  take(seeds);
  if (static_cast<int>(plans.size()) < n) take(input.compiler->propose(input.strategy, {}, n, input.seed));
  return plans;
}

std::vector<PlanOutcome> outcomes_of(const SearchInput& input) {
  std::vector<PlanOutcome> outcomes;
  std::vector<double> times;
  for (const Trial& trial : input.trials) {
    outcomes.push_back({trial.plan, trial.outcome == Outcome::kCorrect, undisturbed_ns(trial.samples_ns), trial.code});
    if (outcomes.back().correct) times.push_back(outcomes.back().ns);
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  if (!times.empty()) std::nth_element(times.begin(), middle, times.end());
  for (const std::string& plan : input.pending)
    outcomes.push_back({plan, !times.empty(), times.empty() ? 0 : *middle, {}});
  return outcomes;
}

void add_candidate(const SearchInput& input, int64_t number, const std::string& plan, Round* round) {
  absl::StatusOr<Source> source = input.compiler->generate(plan);
  if (source.ok()) {
    round->candidates.push_back({number, plan, *std::move(source)});
    return;
  }
  Trial rejected;
  rejected.trial = number;
  rejected.plan = plan;
  rejected.outcome = Outcome::kRejected;
  rejected.message = std::string(source.status().message());
  round->rejected.push_back(std::move(rejected));
}

// Returns the lower one of `best` (0: none yet) and the time of a trial.
double better_ns(double best, const Trial& trial) {
  if (trial.outcome != Outcome::kCorrect || trial.samples_ns.empty()) return best;
  const double ns = undisturbed_ns(trial.samples_ns);
  return best == 0 || ns < best ? ns : best;
}

// Returns the time of a finalist, computed from all samples that its worker took of its plan, without confirmations.
double time_of_final(const PhaseTrial& final, const std::vector<PhaseTrial>& all) {
  std::vector<int64_t> samples;
  for (const PhaseTrial& item : all) {
    if (item.trial.plan == final.trial.plan && item.trial.outcome == Outcome::kCorrect && !confirms(item.phase) &&
        item.name() == final.name())
      samples.insert(samples.end(), item.trial.samples_ns.begin(), item.trial.samples_ns.end());
  }
  return undisturbed_ns(samples);
}

// Returns the time of a plan, computed from the samples of all its trials; 0 if there are no samples.
double time_of_plan(const std::string& plan, const std::vector<Trial>& trials) {
  std::vector<int64_t> samples;
  for (const Trial& trial : trials)
    if (trial.plan == plan && trial.outcome == Outcome::kCorrect)
      samples.insert(samples.end(), trial.samples_ns.begin(), trial.samples_ns.end());
  return undisturbed_ns(samples);
}

}  // namespace

bool was_tried(const std::vector<Trial>& trials, const std::string& plan) {
  return std::any_of(trials.begin(), trials.end(), [&](const Trial& trial) { return trial.plan == plan; });
}

bool was_proposed(const SearchInput& input, const std::string& plan) {
  return was_tried(input.trials, plan) ||
         std::find(input.pending.begin(), input.pending.end(), plan) != input.pending.end();
}

std::optional<KnownPlan> known_plan(const KernelRecord& record) {
  const double ns = undisturbed_ns(record.samples_ns);
  if (!(ns > 0)) return std::nullopt;
  return KnownPlan{record.graph, record.plan, undisturbed_ns(record.default_samples_ns) / ns, kin_of(record.graph)};
}

void Tally::add(const Trial& trial) {
  ++outcomes[static_cast<size_t>(trial.outcome)];
  best_ns = better_ns(best_ns, trial);
  if (trial.outcome != Outcome::kCorrect || (default_trial_ >= 0 && default_trial_ < trial.trial)) return;
  default_trial_ = trial.trial;
  default_ns = undisturbed_ns(trial.samples_ns);
}

Round next_round(const SearchInput& input) {
  Round round;
  const auto known = static_cast<int64_t>(input.trials.size() + input.pending.size());
  const int n = static_cast<int>(std::min<int64_t>(kRoundSize, input.needed - known));
  if (n <= 0) return round;
  std::vector<std::string> plans;
  if (known == 0) {
    plans = first_plans(input, n);
  } else {
    std::copy_if(input.also.begin(), input.also.end(), std::back_inserter(plans),
                 [&](const std::string& plan) { return !was_proposed(input, plan); });
    if (const int rest = n - static_cast<int>(plans.size()); rest > 0)
      for (std::string& plan : input.compiler->propose(input.strategy, outcomes_of(input), rest, input.seed))
        if (std::find(plans.begin(), plans.end(), plan) == plans.end()) plans.push_back(std::move(plan));
  }
  if (static_cast<int>(plans.size()) > n) plans.resize(n);
  round.size = static_cast<int64_t>(plans.size());
  for (size_t i = 0; i < plans.size(); ++i)
    add_candidate(input, input.next_trial + static_cast<int64_t>(i), plans[i], &round);
  return round;
}

Round stored_round(const SearchInput& input, int64_t phase, const std::vector<PlannedTrial>& candidates) {
  Round round;
  round.phase = phase;
  round.size = static_cast<int64_t>(candidates.size());
  for (const PlannedTrial& candidate : candidates) add_candidate(input, candidate.trial, candidate.plan, &round);
  return round;
}

Round final_round(const SearchInput& input, int64_t phase, int finalists) {
  Round round;
  round.phase = phase;
  if (input.trials.empty()) {
    const std::string standard = input.compiler->seeds().front();
    add_candidate(input, 0, standard, &round);
    if (!input.near.empty() && input.near.front() != standard) add_candidate(input, 1, input.near.front(), &round);
    round.size = 1;
    return round;
  }
  std::vector<const Trial*> correct;
  for (const Trial& trial : input.trials) {
    if (trial.outcome == Outcome::kCorrect) correct.push_back(&trial);
  }
  if (correct.empty()) return round;
  const Trial* standard = correct.front();
  std::stable_sort(correct.begin(), correct.end(), [](const Trial* a, const Trial* b) {
    if (a->hopeless != b->hopeless) return b->hopeless;
    return undisturbed_ns(a->samples_ns) < undisturbed_ns(b->samples_ns);
  });
  const double best = undisturbed_ns(correct.front()->samples_ns);
  const auto may_win = [&](const Trial* trial) {
    return !trial->hopeless && undisturbed_ns(trial->samples_ns) <= kMayWinWithin * best;
  };
  size_t kept = std::min(correct.size(), static_cast<size_t>(finalists));
  while (kept > kFewestFinalists && !may_win(correct[kept - 1])) --kept;
  correct.resize(kept);
  if (std::find(correct.begin(), correct.end(), standard) == correct.end()) correct.push_back(standard);
  for (const Trial* trial : correct) add_candidate(input, trial->trial, trial->plan, &round);
  round.size = static_cast<int64_t>(correct.size());
  return round;
}

Round transfer_round(const SearchInput& input, int64_t phase, const KernelRecord& elsewhere) {
  Round round;
  round.phase = phase;
  add_candidate(input, 0, input.compiler->seeds().front(), &round);
  if (elsewhere.plan != input.compiler->seeds().front()) add_candidate(input, 1, elsewhere.plan, &round);
  round.size = static_cast<int64_t>(round.candidates.size());
  return round;
}

bool holds_here(const KernelRecord& elsewhere, const std::vector<Trial>& finals) {
  return std::any_of(finals.begin(), finals.end(), [&](const Trial& trial) {
    return trial.plan == elsewhere.plan && trial.outcome == Outcome::kCorrect;
  });
}

Standing standing_of(const SearchInput& input, int64_t launches, double bound_ns) {
  Standing standing;
  standing.launches = launches;
  standing.bound_ns = bound_ns;
  double best = 0;
  for (size_t i = 0; i < input.trials.size(); ++i) {
    best = better_ns(best, input.trials[i]);
    if ((i + 1) % kRoundSize == 0) standing.best_ns.push_back(best);
  }
  return standing;
}

bool is_disturbed(const std::vector<Trial>& finals, const std::vector<Trial>& trials) {
  std::vector<double> slower;
  for (const Trial& final : finals) {
    const double before = time_of_plan(final.plan, trials), now = better_ns(0, final);
    if (before > 0 && now > 0) slower.push_back(now / before);
  }
  std::sort(slower.begin(), slower.end());
  return !slower.empty() && slower[slower.size() / 2] > kDisturbed;
}

bool any_correct(const std::vector<Trial>& trials) {
  return std::any_of(trials.begin(), trials.end(),
                     [](const Trial& trial) { return trial.outcome == Outcome::kCorrect; });
}

absl::StatusOr<std::optional<KernelRecord>> record_of_finals(
    const SearchInput& input, const PlannedGroup& group, const Device& device, const std::vector<PhaseTrial>& finals,
    const std::vector<PhaseTrial>& all, const std::vector<uint64_t>& check_seeds, double budget_s) {
  const PhaseTrial* won = nullptr;
  const PhaseTrial* first = nullptr;
  double least = 0;
  for (const PhaseTrial& final : finals) {
    if (final.trial.outcome != Outcome::kCorrect || final.trial.samples_ns.empty()) continue;
    const double ns = time_of_final(final, all);
    if (won == nullptr || ns < least) {
      won = &final;
      least = ns;
    }
    if (first == nullptr || final.trial.trial < first->trial.trial) first = &final;
  }
  if (won == nullptr) return std::nullopt;
  // If the winner's median is larger than the default schedule's, the default schedule wins, because people see medians
  // and would take the winner for the slower one.
  if (median_of(won->trial.samples_ns) > median_of(first->trial.samples_ns)) won = first;
  const Trial* best = &won->trial;
  const Trial* standard = &first->trial;
  KernelRecord record;
  record.key = group.key;
  record.environment = environment_of(device);
  record.device = device;
  record.graph = group.text;
  record.plan = best->plan;
  record.default_plan = standard->plan;
  record.problem = group.problem;
  WL_ASSIGN_OR_RETURN(record.source, input.compiler->generate(best->plan));
  record.object_sha256 = best->object_sha256;
  record.samples_ns = best->samples_ns;
  record.default_samples_ns = standard->samples_ns;
  record.measured_by = won->name();
  record.max_error = best->max_error;
  record.bound = best->bound;
  record.check_seeds = check_seeds;
  record.strategy = input.strategy;
  record.trials_asked = input.needed;
  record.budget_s = budget_s;
  for (const Trial& trial : input.trials) ++record.outcomes[static_cast<size_t>(trial.outcome)];
  if (input.trials.empty())
    for (const PhaseTrial& final : finals) ++record.outcomes[static_cast<size_t>(final.trial.outcome)];
  record.bytes = group.bytes;
  record.ops = group.ops;
  record.flops = group.flops;
  for (const PhaseTrial& item : all) {
    record.compile_s += item.trial.compile_s;
    record.check_s += item.trial.check_s;
    record.measure_s += item.trial.measure_s;
  }
  record.digest = record_digest(record);
  return record;
}

uint64_t first_check_seed(const std::string& key) {
  const std::string hash = Encoder("warploom.check", 1).text(key).hash();
  return std::stoull(hash.substr(0, 15), nullptr, 16);
}

bool satisfies(const KernelRecord& record, int64_t trials, double budget_s) {
  if (trials <= 1) return true;
  if (record.trials_asked < trials) return false;
  return record.budget_s == 0 || (budget_s > 0 && record.budget_s >= budget_s);
}

}  // namespace wl
