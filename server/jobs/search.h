// A search as pure functions of its trials: the next round, the candidates of a promotion, and the record. Nothing here
// uses a clock, a thread or a store, so a restarted coordinator proposes the same candidates.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/search/budget.h"
#include "server/jobs/job_plan.h"

namespace wl {

inline constexpr int kRoundSize = 8;  // candidates of a round; they are proposed and compiled together
inline constexpr int kFinalists = 8;

struct SearchInput {
  const GroupCompiler* compiler = nullptr;
  std::string strategy;
  uint64_t seed = 0;
  int64_t wanted = 1;                // trials; 1: the default schedule only
  std::vector<std::string> near;     // plans that won for similar groups before the search began
  std::vector<std::string> also;     // plans to try next, before the strategy's own
  std::vector<Trial> trials;         // in the order of their numbers
  std::vector<std::string> pending;  // plans that are being measured
  int64_t next_trial = 0;            // the number of the next candidate
};
bool was_tried(const std::vector<Trial>& trials, const std::string& plan);
// Whether a plan was tried or is being measured.
bool was_proposed(const SearchInput& input, const std::string& plan);

// What the trials of a search add up to.
struct Tally {
  double best_ns = 0, default_ns = 0;  // 0: none is correct. default_ns is of the first correct trial by number
  OutcomeCounts outcomes{};
  void add(const Trial& trial);

 private:
  int64_t default_trial_ = -1;
};

// Candidates that are proposed together. Those that lowering refused are rejected trials already.
struct Round {
  int64_t phase = 0;
  int64_t size = 0;
  std::vector<Candidate> candidates;
  std::vector<Trial> rejected;
  std::optional<Check> check;  // of a confirmation: its own
};

// The next round of the search, with what is being measured taken into account; size 0 when `wanted` is reached or the
// space is exhausted. A plan that is being measured counts as if it took the median time of the correct trials (the
// constant liar of D. Ginsbourger, R. Le Riche and L. Carraro, "Kriging is well-suited to parallelize optimization",
// 2010).
Round next_round(const SearchInput& input);

// The round whose candidates the store has. One that this version cannot generate any more is a rejected trial.
Round stored_round(const SearchInput& input, int64_t phase, const std::vector<PlannedTrial>& candidates);

// The promotion: the best trials that may win, at most `finalists`, and the first correct one, normally the default
// schedule; the default schedule alone while there are no trials.
Round final_round(const SearchInput& input, int64_t phase, int finalists);

// The promotion of a record that was made under another environment (other compilers): its plan and the default
// schedule are verified and timed again before it is served.
Round transfer_round(const SearchInput& input, int64_t phase, const KernelRecord& elsewhere);
// Whether the plan of that record was correct here.
bool holds_here(const KernelRecord& elsewhere, const std::vector<Trial>& finals);

// The figures by which the budget deals out rounds: the best time after each round so far.
Standing standing_of(const SearchInput& input, int64_t launches, double bound_ns);

// Whether most finalists were slower than the same plans in the search, by more than the times of one machine vary.
// They are timed again then.
bool is_disturbed(const std::vector<Trial>& finals, const std::vector<Trial>& trials);
bool any_correct(const std::vector<Trial>& trials);

// The record of the finalist whose plan has the least time, or of the first correct one, normally the default schedule,
// where that has the lower median in the promotion; nullopt when none was correct. `all`: every trial of the
// search, finals too, whose times the record sums up. For a finalist the samples count that the worker of its promotion
// took, there and in the search: others may have faster machines, or say so.
absl::StatusOr<std::optional<KernelRecord>> record_of_finals(const SearchInput& input, const PlannedGroup& group,
                                                             const Device& device,
                                                             const std::vector<PhaseTrial>& finals,
                                                             const std::vector<PhaseTrial>& all,
                                                             const std::vector<uint64_t>& check_seeds, double budget_s);

// The seed of the first check of every search of the key.
uint64_t first_check_seed(const std::string& key);

// Whether a record was searched for at least so many trials and so much time.
bool satisfies(const KernelRecord& record, int64_t trials, double budget_s);

}  // namespace wl
