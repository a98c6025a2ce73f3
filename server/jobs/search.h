// A search as pure functions of its trials, which return the next round, the candidates of a promotion, and the record.
// They use no clock, thread or store, so a restarted coordinator proposes the same candidates.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/search/budget.h"
#include "server/jobs/job_plan.h"

namespace wl {

inline constexpr int kRoundSize = 8;  // number of candidates in a round, which are proposed and compiled together
inline constexpr int kFinalists = 8;

struct SearchInput {
  const GroupCompiler* compiler = nullptr;
  std::string strategy;
  uint64_t seed = 0;
  int64_t needed = 1;                // number of trials wanted; 1: the default schedule only
  std::vector<std::string> near;     // plans that won for similar groups before the first round
  std::vector<std::string> also;     // plans to try before the strategy's own proposals
  std::vector<Trial> trials;         // all trials so far, in the order of their numbers
  std::vector<std::string> pending;  // plans that are being measured
  int64_t next_trial = 0;            // trial number of the next candidate
  Work* work = nullptr;              // ends the making of a check once nobody needs the search; null: nothing does
};
bool was_tried(const std::vector<Trial>& trials, const std::string& plan);
// Whether a plan was tried or is being measured.
bool was_proposed(const SearchInput& input, const std::string& plan);

// Returns the record's plan as a plan that may suit similar groups; nullopt: the record has no time.
std::optional<KnownPlan> known_plan(const KernelRecord& record);

// Sums over the trials of a search.
struct Tally {
  // Times in ns of the fastest correct trial and of the correct trial with the lowest number; 0: none is correct.
  double best_ns = 0, default_ns = 0;
  OutcomeCounts outcomes{};
  void add(const Trial& trial);

 private:
  int64_t default_trial_ = -1;
};

// Candidates that are proposed together. A plan from which no source can be generated becomes a rejected trial at once.
struct Round {
  int64_t phase = 0;
  int64_t size = 0;
  std::vector<Candidate> candidates;
  std::vector<Trial> rejected;
  std::optional<Check> check;  // the check of a confirmation, which takes the place of the search's second check
};

// Returns the next round; its size is 0 if `needed` trials are reached or the space is exhausted. A plan that is being
// measured counts as if it took the median time of the correct trials (the constant liar of D. Ginsbourger, R. Le Riche
// and L. Carraro, "Kriging is well-suited to parallelize optimization", 2010).
Round next_round(const SearchInput& input);

// Returns the round of these stored candidates. A candidate that this version cannot generate becomes a rejected trial.
Round stored_round(const SearchInput& input, int64_t phase, const std::vector<PlannedTrial>& candidates);

// Returns the round of a promotion: at most `finalists` of the best trials that may still win, and the first correct
// trial, normally the default schedule. Without trials, the default schedule is promoted and, if there is one, the
// first plan that won for a similar group.
Round final_round(const SearchInput& input, int64_t phase, int finalists);

// Returns the round that promotes a record of another environment (other compilers): the record's plan and the default
// schedule, which are verified and timed before the plan is served.
Round transfer_round(const SearchInput& input, int64_t phase, const KernelRecord& elsewhere);
// Whether the plan of a record of another environment was correct in this one. `finals`: the trials of its promotion.
bool holds_here(const KernelRecord& elsewhere, const std::vector<Trial>& finals);

// Returns the figures by which the engine shares out rounds among searches, such as the best time after each round.
Standing standing_of(const SearchInput& input, int64_t launches, double bound_ns);

// Whether most finalists were slower than the same plans in the rounds, by more than the noise of one machine. If so,
// the finalists have to be timed again.
bool is_disturbed(const std::vector<Trial>& finals, const std::vector<Trial>& trials);
bool any_correct(const std::vector<Trial>& trials);

// Returns the record of the finalist with the least time, or of the first correct one (normally the default schedule)
// if that one has the lower median in the promotion; nullopt if no finalist was correct. `all`: all trials of the
// search, `finals` included; the record has the sums of their times. A finalist's time is computed from the samples
// that its promotion's worker took, there and in the rounds, since other workers may have faster machines, or claim to.
absl::StatusOr<std::optional<KernelRecord>> record_of_finals(const SearchInput& input, const PlannedGroup& group,
                                                             const Device& device,
                                                             const std::vector<PhaseTrial>& finals,
                                                             const std::vector<PhaseTrial>& all,
                                                             const std::vector<uint64_t>& check_seeds, double budget_s);

// Returns the seed of the first check, which is the same in all searches of a key.
uint64_t first_check_seed(const std::string& key);

// Whether a record's search had at least `trials` trials and a budget of at least `budget_s` seconds (0: unlimited).
bool satisfies(const KernelRecord& record, int64_t trials, double budget_s);

}  // namespace wl
