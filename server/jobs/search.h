// One search as a pure function of its trials: which round comes next, who is in the promotion, and what record comes
// out. Nothing here has a clock, a thread or a store, so that a restarted coordinator proposes what it would have
// proposed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/search/budget.h"
#include "server/jobs/job_plan.h"

namespace wl {

inline constexpr int kRoundSize = 8;  // candidates between two looks at what is known; they share a compiler run
inline constexpr int kFinalists = 8;

struct SearchInput {
  const GroupCompiler* compiler = nullptr;
  std::string strategy;
  uint64_t seed = 0;
  int64_t wanted = 1;             // trials; 1: the default schedule only
  std::vector<std::string> near;  // plans that won for similar groups before the search began
  std::vector<std::string> also;  // plans to try next, before the strategy's own
  std::vector<Trial> trials;      // of complete rounds, in order
};
bool was_tried(const std::vector<Trial>& trials, const std::string& plan);

// Candidates of trials first .. first + size - 1; those that lowering refused are trials already.
struct Round {
  int64_t phase = 0;
  int64_t first = 0;
  int64_t size = 0;
  std::vector<Candidate> candidates;
  std::vector<Trial> rejected;
};

// The next round of the search; size 0 when `wanted` is reached or the space is exhausted.
Round next_round(const SearchInput& input);

// The promotion: the best `finalists` and the first trial that was correct (the default schedule, normally);
// or, while nothing was tried, the default schedule alone.
Round final_round(const SearchInput& input, int64_t phase, int finalists);

// The default schedule and the plan of a record of the same key that was made under another environment (other
// compilers): the second is to be verified and timed again before it is served.
Round transfer_round(const SearchInput& input, int64_t phase, const KernelRecord& elsewhere);
// Whether that plan came out right.
bool holds_here(const KernelRecord& elsewhere, const std::vector<Trial>& finals);

// What dealing out rounds goes by: the best after each round so far.
Standing standing_of(const SearchInput& input, int64_t launches, double bound_ns);

// Of the best correct trial, undisturbed; 0 = none.
double best_ns(const std::vector<Trial>& trials);
// Whether most finalists were slower than the same plans in the search, by more than one machine varies: they are to be
// timed again.
bool is_disturbed(const std::vector<Trial>& finals, const std::vector<Trial>& trials);
bool any_correct(const std::vector<Trial>& trials);
OutcomeCounts count_outcomes(const std::vector<Trial>& trials);

// The record of the finalist whose plan was fastest in any of its samples; nullopt when none was correct. `all`: every
// trial of the search, the finals too, for these samples and its figures.
absl::StatusOr<std::optional<KernelRecord>> record_of_finals(const SearchInput& input, const PlannedGroup& group,
                                                             const Device& device, const std::vector<Trial>& finals,
                                                             const std::vector<Trial>& all,
                                                             const std::vector<uint64_t>& check_seeds, double budget_s);

// Known from the key alone: the first check of every search of the key.
uint64_t first_check_seed(const std::string& key);

// Whether a record answers a wish for so many trials and so much time.
bool satisfies(const KernelRecord& record, int64_t trials, double budget_s);

}  // namespace wl
