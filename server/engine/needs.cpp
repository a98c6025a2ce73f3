// What a job needs: a record of every group of its plan, from the store or from a search.
#include <algorithm>
#include <limits>

#include "compiler/search/nearest.h"
#include "server/engine/jobs.h"

namespace wl {
namespace {

constexpr int kKnown = 256;  // similar groups are looked for among this many of the newest records

}  // namespace

// Returns the winning plans that the store had when the job was created. Later ones are left out, so that a restarted
// coordinator finds the same plans for the job.
absl::StatusOr<KnownPlans> Jobs::known_plans(const JobRow& job) {
  WL_ASSIGN_OR_RETURN(const std::vector<RecordRow> rows,
                      store_->list_records(RecordCursor{job.created_ms, ""}, kKnown, {.team = job.team}));
  std::vector<KnownPlan> plans;
  for (const RecordRow& row : rows) {
    if (auto plan = known_plan(row.record)) plans.push_back(*std::move(plan));
  }
  return std::make_shared<const std::vector<KnownPlan>>(std::move(plans));
}

// Returns the keys of the groups for whose kin a search has found a winner, if the job wants predicted kernels.
std::set<std::string> Jobs::promising_groups(const ActiveJob& job) {
  if (effort_of(job.row.options).compares) return {};
  std::set<std::string> kin, keys;
  for (const KnownPlan& plan : *job.known)
    if (plan.gain >= kWorthProposing) kin.insert(plan.kin);
  for (const PlannedGroup& group : job.plan->groups)
    if (kin.contains(group.kin)) keys.insert(group.key);
  return keys;
}

// Asks for what the job wants, as far as is known. Returns whether that was anything new.
absl::StatusOr<bool> Jobs::need_wanted(ActiveJob& job) {
  // Groups for which a search has found no correct kernel.
  std::set<std::string> without;
  for (const auto& [key, id] : job.searches)
    if (searches_->at(id).end == Search::End::kNothing) without.insert(key);
  const TuneOptions& asked = job.row.options;
  const Wish wish{.trials = asked.trials,
                  .compares = effort_of(asked).compares,
                  .last_cover = job.last_cover || (asked.budget_s > 0 && effort_of(asked).compares),
                  .promising = promising_groups(job)};
  int64_t hits = 0, misses = 0;
  bool added = false;
  for (const auto& [at, trials] : wanted_trials(*job.plan, job.records, without, wish)) {
    const PlannedGroup& group = job.plan->groups[at];
    const auto needed = job.needed.find(group.key);
    const bool is_new = needed == job.needed.end();
    if (!is_new && needed->second >= trials) continue;
    WL_RETURN_IF_ERROR(need(job, group, trials));
    added = true;
    if (is_new) ++(job.searches.contains(group.key) ? misses : hits);
  }
  if (hits + misses > 0 && !job.row.own) options_.looked_up(hits, misses);
  return added;
}

absl::Status Jobs::need(ActiveJob& job, const PlannedGroup& group, int64_t trials) {
  const TuneOptions& asked = job.row.options;
  const std::string environment = environment_of(*job.row.device);
  job.needed[group.key] = std::max(job.needed[group.key], trials);
  WL_ASSIGN_OR_RETURN(std::optional<RecordRow> record,
                      store_->record_by_key(group.key, environment, {.team = job.row.team}));
  if (record && !asked.retune && satisfies(record->record, trials, asked.budget_s)) {
    job.records.insert_or_assign(group.key, std::move(record->record));
    return absl::OkStatus();
  }
  SearchRow wanted;
  wanted.key = group.key;
  wanted.environment = environment;
  wanted.strategy = asked.strategy;
  wanted.seed = asked.seed;
  wanted.team = job.row.team;
  WL_ASSIGN_OR_RETURN(SearchRow row, store_->open_search(job.row.id, wanted, asked.retune));
  if (record && record->search_id == row.id && satisfies(record->record, trials, asked.budget_s)) {
    // The job searches anew (TuneOptions::retune), and its search of this group had already made this record before the
    // coordinator restarted.
    job.records.insert_or_assign(group.key, std::move(record->record));
    job.searched.insert(group.key);
    return absl::OkStatus();
  }
  WL_ASSIGN_OR_RETURN(Search * search, searches_->take_up(row, group, *job.row.device, job.plan->machine, job.known));
  return need_search(job, group, trials, *search, std::move(record));
}

// Lets the job join the search of a group. `record`: the store's record of the group's key, if it has one.
absl::Status Jobs::need_search(ActiveJob& job, const PlannedGroup& group, int64_t trials, Search& search,
                               std::optional<RecordRow> record) {
  const TuneOptions& asked = job.row.options;
  // A client does not wait for trials that only a job in the background needs.
  if (!asked.background && search.background) search.input.needed = std::min(search.input.needed, trials);
  if (!asked.background)
    searches_->needed_now(search);
  else if (search.jobs.empty())
    search.background = true;
  search.jobs.insert(job.row.id);
  job.searches[group.key] = search.row.id;
  search.budget_s = std::max(search.budget_s, asked.budget_s);
  search.cold = asked.cold;
  search.predicts |= !effort_of(asked).compares;
  if (!record && !asked.retune && search.input.trials.empty()) {
    WL_ASSIGN_OR_RETURN(std::optional<RecordRow> other, store_->record_by_key(group.key, "", {.team = job.row.team}));
    if (other && satisfies(other->record, trials, asked.budget_s)) search.elsewhere = std::move(other->record);
  }
  if (asked.at_once > 0) search.at_once = asked.at_once;
  const bool more = trials > search.input.needed;
  if (more) search.exhausted = false;
  search.input.needed = std::max(search.input.needed, trials);
  // A search with a record is reopened if more trials are needed, or if its record is no longer there: it was
  // invalidated, or its object is gone. One without a correct kernel is reopened if more trials are needed and its
  // group has schedules, or if it ended only because another job was cancelled.
  const bool ended_early = search.end == Search::End::kNothing && ((more && search.compiler) || search.cancelled);
  if (ended_early || (search.end == Search::End::kRecord && (more || !record))) search.end = Search::End::kOpen;
  if (search.end == Search::End::kRecord && record) job.records.insert_or_assign(group.key, std::move(record->record));
  if (search.end == Search::End::kOpen) {
    search.stop = search.cancelled = false;
    if (search.over.stop_requested()) search.over = std::stop_source();
    searches_->mark(search);
  }
  return absl::OkStatus();
}

// Tries the winning plan of a part on the fused group. The group's best kernel is slower than the kernels of its
// parts, possibly only because its search missed a good plan. The trial is stored, so a restarted coordinator does not
// repeat it.
absl::Status Jobs::try_plan_of_part(ActiveJob& job, const PlannedGroup& whole, const PlannedGroup& part) {
  const auto winner = job.records.find(part.key);
  if (!whole.searched() || !job.records.contains(whole.key) || winner == job.records.end()) return absl::OkStatus();
  if (!job.compared.emplace(whole.key, part.key).second) return absl::OkStatus();
  WL_ASSIGN_OR_RETURN(const std::optional<RecordRow> known,
                      store_->record_by_key(whole.key, environment_of(*job.row.device), {.team = job.row.team}));
  const auto opened = compiler_->open(whole.graph, job.plan->machine);
  if (!known || known->search_id == kSearchElsewhere || !opened.ok()) return absl::OkStatus();
  const KnownPlan better{part.text, winner->second.plan, std::numeric_limits<double>::infinity()};
  const std::vector<std::string> also = (*opened)->nearest({better}, 1);
  WL_ASSIGN_OR_RETURN(const std::vector<PhaseTrial> stored, store_->trials(known->search_id));
  std::vector<Trial> trials;
  for (const PhaseTrial& item : stored)
    if (item.phase == 0) trials.push_back(item.trial);
  if (also.empty() || was_tried(trials, also[0]) || !job.compared.emplace(whole.key, also[0]).second)
    return absl::OkStatus();
  const Search* live = searches_->find(known->search_id);
  const int64_t needed = std::max(static_cast<int64_t>(trials.size()), known->record.trials_asked) + 1;
  const bool again = live != nullptr && live->end == Search::End::kOpen;
  WL_RETURN_IF_ERROR(need(job, whole, again ? live->input.needed + 1 : needed));
  Search& search = searches_->at(job.searches.at(whole.key));
  search.input.also.push_back(also[0]);
  search.exhausted = false;
  return absl::OkStatus();
}

// Returns, for an error message, the outcomes of all candidates of the first group that has no kernel; "" if all groups
// have kernels.
std::string Jobs::why_none(const ActiveJob& job) const {
  for (const auto& [key, id] : job.searches) {
    const Search* const search = searches_->find(id);
    if (job.records.contains(key) || search == nullptr) continue;
    std::map<Outcome, int64_t> outcomes;
    const Trial* last = nullptr;
    for (const PhaseTrial& item : search->all) {
      if (item.trial.outcome == Outcome::kCorrect) continue;
      ++outcomes[item.trial.outcome];
      last = &item.trial;
    }
    if (last == nullptr) continue;
    std::string text = "\nof its candidates";
    for (const auto& [outcome, count] : outcomes)
      append(&text, outcome == outcomes.begin()->first ? " " : ", ", count, " ended with ",
             kOutcomeNames[static_cast<int>(outcome)]);
    return cat(text, "; the last: ", last->message);
  }
  return "";
}

// Returns the error of a job whose time was over before all its groups had kernels.
absl::Status Jobs::why_unfinished(const ActiveJob& job) const {
  const TuneOptions& asked = job.row.options;
  if (workers_->serving(*job.row.device, job.row.team) == 0)
    return absl::UnavailableError(cat("the budget of ", asked.budget_s, " s is over before every group has a kernel, ",
                                      "and no worker for target ", asked.target, " is there; start one and ask again"));
  const auto without = std::count_if(job.needed.begin(), job.needed.end(),
                                     [&](const auto& group) { return !job.records.contains(group.first); });
  return absl::UnavailableError(cat("the budget of ", asked.budget_s, " s is over, and ", without, " of ",
                                    job.needed.size(),
                                    " kernels were not verified; what was measured is kept: the same ",
                                    "command continues from here, or give it a larger budget"));
}

}  // namespace wl
