#include "server/engine/searches.h"

#include <algorithm>
#include <random>

#include "compiler/model/roofline.h"

namespace wl {
namespace {

constexpr int kNear = 2;  // number of winning plans of similar groups that a search tries first

// Continues a search from what the store has of it: its trials, its open batches and, by phase, the check seeds
// (`seeds`) of the promotions and confirmations that are not concluded yet.
void resume(Search& search, std::vector<PhaseTrial> trials, std::vector<BatchRow> open_batches,
            std::map<int64_t, uint64_t> seeds) {
  std::erase_if(open_batches, [&](const BatchRow& batch) {
    return std::any_of(trials.begin(), trials.end(), [&](const PhaseTrial& item) {
      return item.phase == batch.phase && item.trial.trial == batch.first_trial;
    });
  });
  search.check_seeds = {first_check_seed(search.row.key), unpredictable()};
  for (const BatchRow& batch : open_batches) {
    search.phase = std::max(search.phase, promotion_of(batch.phase));
    // A worker may be measuring the promotion already with this seed, so the seed must stay the same.
    if (batch.phase > 0 && !confirms(batch.phase)) search.check_seeds.back() = batch.check_seed;
    if (batch.phase > 0) continue;
    for (const PlannedTrial& candidate : batch.candidates)
      search.input.next_trial = std::max(search.input.next_trial, candidate.trial + 1);
  }
  const auto is_open = [&](int64_t phase) {
    return std::any_of(open_batches.begin(), open_batches.end(),
                       [&](const BatchRow& batch) { return promotion_of(batch.phase) == phase; });
  };
  search.seeds_of = std::move(seeds);
  for (const auto& [phase, seed] : search.seeds_of) {
    search.phase = std::max(search.phase, promotion_of(phase));
    if (phase == search.phase) search.check_seeds.back() = seed;
  }
  const bool may_be_unconcluded = search.seeds_of.contains(search.phase) && !is_open(search.phase);
  search.restored = std::move(open_batches);
  bool promoted_any = false, promoted_right = false;
  for (const PhaseTrial& item : trials) {
    search.phase = std::max(search.phase, promotion_of(item.phase));
    search.unconcluded |= may_be_unconcluded && item.phase == search.phase;
    promoted_any |= item.phase > 0;
    promoted_right |= item.phase > 0 && item.trial.outcome == Outcome::kCorrect;
    add_trial(search, item);
  }
  search.gave_up_default = promoted_any && !promoted_right;
}

struct SetUp {
  std::shared_ptr<const GroupCompiler> compiler;  // the group's compiler; null: the group has no schedule
  std::vector<Check> checks;
  double bound_ns = 0, floor_ns = 0;
};

absl::StatusOr<SetUp> set_up_of(const Compiler& compiler, const Graph& group, const Machine& machine,
                                const std::vector<uint64_t>& seeds, Work* work) {
  SetUp made;
  auto opened = compiler.open(group, machine);
  if (!opened.ok()) return made;
  made.compiler = *std::move(opened);
  made.bound_ns = roofline(group, machine).ns();
  made.floor_ns = floor_ns(group, machine);
  for (uint64_t seed : seeds) {
    WL_ASSIGN_OR_RETURN(Check check, made.compiler->check(seed, work));
    made.checks.push_back(std::move(check));
  }
  return made;
}

}  // namespace

uint64_t unpredictable() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 31) ^ device();
}

void add_trial(Search& search, const PhaseTrial& item) {
  search.all.push_back(item);
  if (item.phase > 0) return;
  const Trial& trial = item.trial;
  std::vector<Trial>& trials = search.input.trials;
  const auto at = std::upper_bound(trials.begin(), trials.end(), trial.trial,
                                   [](int64_t number, const Trial& other) { return number < other.trial; });
  trials.insert(at, trial);
  search.tally.add(trial);
  search.input.next_trial = std::max(search.input.next_trial, trial.trial + 1);
}

absl::StatusOr<Search*> Searches::take_up(const SearchRow& row, const PlannedGroup& group, const Device& device,
                                          const Machine& machine, const KnownPlans& known) {
  if (Search* live = find(row.id)) return live;
  Search search;
  search.row = row;
  search.token = ++last_token_;
  search.group = group;
  search.device = device;
  search.machine = machine;
  search.known = known;
  search.input.strategy = row.strategy;
  search.input.seed = row.seed;
  // A batch that an earlier object of this search offered may be reported between the two reads. Its trials are found
  // nevertheless, because batches are read before trials.
  WL_ASSIGN_OR_RETURN(std::vector<BatchRow> batches, store_->open_batches(row.id));
  WL_ASSIGN_OR_RETURN(std::vector<PhaseTrial> trials, store_->trials(row.id));
  WL_ASSIGN_OR_RETURN(auto seeds, store_->unconcluded_seeds(row.id));
  resume(search, std::move(trials), std::move(batches), std::move(seeds));
  search.timed = !search.all.empty() || !search.restored.empty();
  if (!search.restored.empty()) leases_->expect(row.id);
  return &searches_.emplace(row.id, std::move(search)).first->second;
}

Search* Searches::find(int64_t id) {
  const auto found = searches_.find(id);
  return found == searches_.end() ? nullptr : &found->second;
}

// Returns the live search with this id and token. Null: that search was dropped, even if a later object has taken up
// the same row of the store.
Search* Searches::find(int64_t id, uint64_t token) {
  Search* const search = find(id);
  return search == nullptr || search->token != token ? nullptr : search;
}

void Searches::tick() {
  rounds_each_.clear();
  std::vector<int64_t> waiting;
  for (const auto& [id, search] : searches_)
    if (search.promoting() && confirms(search.open.begin()->second.phase)) waiting.push_back(id);
  for (int64_t id : waiting)
    if (Search* search = find(id)) confirm_no_longer(*search);
  mark_waiting();  // workers may have come, or searches may have been dropped
  for (const auto& [id, search] : searches_) {
    const bool may_propose = search.end == Search::End::kOpen && search.compiler && !search.working && !search.stop &&
                             !search.exhausted && !search.promoting();
    if (may_propose && static_cast<int64_t>(search.open.size()) < most_rounds(search)) mark(search);
  }
}

// Opens the group's space and computes the checks by the oracle, in the pool.
void Searches::set_up(Search& search) {
  search.working = true;
  loop_->compute([this, id = search.row.id, group = search.group.graph, machine = search.machine,
                  seeds = search.check_seeds, token = search.token, needed = needed(search)] {
    Work work(needed);
    auto made = std::make_shared<absl::StatusOr<SetUp>>(set_up_of(*compiler_, group, machine, seeds, &work));
    loop_->post([this, id, token, made] {
      Search* live = find(id, token);
      if (live == nullptr) return;
      live->working = false;
      if (absl::IsCancelled(made->status())) return leave_undone(*live);
      if (!made->ok()) return observer_->on_failure(*live, made->status());
      // A group without a legal schedule is no failure of the job, because the group's parts may have schedules.
      if ((*made)->compiler == nullptr) return finish(*live, Search::End::kNothing);
      live->compiler = std::move((*made)->compiler);
      live->input.compiler = live->compiler.get();
      live->checks = std::move((*made)->checks);
      live->bound_ns = (*made)->bound_ns;
      live->floor_ns = (*made)->floor_ns;
      // Stored plans may have been written by an older version of the program, so each is replaced by its text in this
      // version.
      for (Trial& trial : live->input.trials) trial.plan = live->compiler->current(trial.plan);
      for (PhaseTrial& each : live->all) each.trial.plan = live->compiler->current(each.trial.plan);
      live->saving = expected_saving(standing(*live));
      mark(*live);
    });
  });
}

// Returns what says whether anybody still needs the search; it is called on a thread of the pool.
std::function<absl::Status()> Searches::needed(const Search& search) const {
  return [loop = loop_, over = search.over.get_token()] {
    return loop->leaving() || over.stop_requested() ? absl::CancelledError("nobody needs the search any more")
                                                    : absl::OkStatus();
  };
}

// Goes on after a task of the pool was ended early, unless the coordinator stops: the search ends, or does the task
// again if another job needs it by now.
void Searches::leave_undone(Search& search) {
  if (loop_->leaving()) return;
  search.over = std::stop_source();
  mark(search);
}

void Searches::step(int64_t id) {
  Search* const found = find(id);
  if (found == nullptr || found->end != Search::End::kOpen) return;
  if (found->building && found->cancelled)
    // The cancelled search ends without waiting for the compiler, which may still be running.
    return on_built(*found, /*may_ask=*/false);
  if (found->working) return;
  Search& search = *found;
  if (search.cancelled && search.open.empty() && !any_correct(search.input.trials))
    return finish(search, Search::End::kNothing);
  if (!search.compiler) return set_up(search);
  if (!search.restored.empty()) {
    const BatchRow row = std::move(search.restored.back());
    search.restored.pop_back();
    return prepare(
        search,
        [row](const SearchInput& input) -> absl::StatusOr<Round> {
          if (confirms(row.phase)) return confirming_round(input, row.phase, row.candidates, row.check_seed);
          return stored_round(input, row.phase, row.candidates);
        },
        row);
  }
  next(search);
}

// Prepares the next round or promotion, if there is one.
void Searches::next(Search& search) {
  search.waits = false;
  if (search.promoting()) return;
  if (search.unconcluded) return conclude_stored(search);
  if (search.elsewhere) {
    return prepare(
        search,
        [phase = ++search.phase, record = *search.elsewhere](const SearchInput& input) {
          return transfer_round(input, phase, record);
        },
        std::nullopt);
  }
  if (search.interim && search.open.empty() && !any_correct(search.input.trials)) {
    search.interim = false;
    mark(search);
    return observer_->on_interim(search);
  }
  if (!search.stop && !search.interim && !search.exhausted && (search.input.needed > 1 || search.gave_up_default)) {
    if (static_cast<int64_t>(search.open.size()) >= most_rounds(search)) return;
    // If the budget is limited, a round that would save little is left out in favour of other searches.
    search.exhausted = search.budget_s > 0 && is_spent(standing(search));
    search.waits = !search.exhausted && waits_for_kin(search);
    if (search.waits) return;
    if (!search.exhausted) {
      const bool any = search.gave_up_default;
      const KnownPlans known = search.all.empty() ? with_winners_of_kin(search) : nullptr;
      return prepare(
          search,
          [any, known](SearchInput input) {
            if (any) input.needed = std::max<int64_t>(input.needed, kRoundSize);
            if (known != nullptr) input.near = input.compiler->nearest(*known, kNear);
            return next_round(input);
          },
          std::nullopt);
    }
  }
  if (!search.open.empty()) return;  // The promotion comes after the last round has been reported.
  const KnownPlans known = search.predicts && search.all.empty() ? only_of_kin(search) : nullptr;
  prepare(
      search,
      [phase = ++search.phase, finalists = search.cancelled ? 2 : kFinalists, known](SearchInput input) {
        if (known != nullptr) input.near = input.compiler->nearest(*known, 1);
        return final_round(input, phase, finalists);
      },
      std::nullopt);
}

// Removes a batch from the open ones and returns its phase; nullopt if the batch was not open.
std::optional<int64_t> Searches::take_open(Search& search, const std::string& batch_id) {
  std::optional<int64_t> phase;
  if (const auto at = search.open.find(batch_id); at != search.open.end()) {
    phase = at->second.phase;
    search.open.erase(at);
  }
  // An earlier object of this search may have offered the batch, which may then be reported before it is offered again.
  if (search.preparing && search.preparing->id == batch_id)
    phase = std::exchange(search.preparing, std::nullopt)->phase;
  std::erase_if(search.restored, [&](const BatchRow& batch) {
    if (batch.id == batch_id) phase = batch.phase;
    return batch.id == batch_id;
  });
  return phase;
}

void Searches::on_trials(int64_t id, const std::string& batch_id, const std::vector<Trial>& trials,
                         const std::string& worker) {
  Search* const search = find(id);
  if (search == nullptr) return;
  const std::optional<int64_t> known = take_open(*search, batch_id);
  if (!known) return;
  const int64_t phase = *known;
  const double before_ns = search->tally.best_ns;
  for (const Trial& trial : trials) add_trial(*search, {phase, trial, worker});
  if (phase == 0) {
    note_best(*search, before_ns);
    search->saving = expected_saving(standing(*search));
    mark(*search);
    return observer_->on_round(*search);
  }
  // If the promotion's batch was split, its trials are evaluated once all its parts have been reported.
  if (!search->open.empty() || !search->restored.empty() || search->preparing) return;
  const absl::Status status = conclude(*search, /*may_ask=*/true);
  if (!status.ok()) observer_->on_failure(*search, status);
}

void Searches::on_split(int64_t id, const std::string& batch_id, const std::vector<BatchRow>& parts) {
  Search* const search = find(id);
  if (search == nullptr || search->open.erase(batch_id) == 0) return;
  for (const BatchRow& part : parts)
    search->open.insert_or_assign(part.id, Search::OpenBatch{part.phase, part.candidates});
}

void Searches::on_store_failure(int64_t id, const absl::Status& status) {
  const Search* search = find(id);
  // Only an error that lasts ends the search: after others, the next attempt to write to the store may succeed.
  if (search != nullptr && lasts(status)) observer_->on_failure(*search, status);
}

// Notes the time now if the trials just added have a new fastest kernel. `before_ns`: the least time before; 0: none.
void Searches::note_best(Search& search, double before_ns) {
  const double now_ns = search.tally.best_ns;
  if (search.timed || !(now_ns > 0) || (before_ns > 0 && now_ns >= before_ns)) return;
  search.best_at = Clock::now();
  if (before_ns <= 0) options_.first_kernel(std::chrono::duration<double>(*search.best_at - search.taken_up).count());
}

void Searches::finish(Search& search, Search::End end) {
  search.end = end;
  if (end == Search::End::kRecord && search.best_at && !std::exchange(search.timed, true))
    options_.best_kernel(std::chrono::duration<double>(*search.best_at - search.taken_up).count());
  mark_waiting();
  observer_->on_end(search);
}

void Searches::stop(Search& search, bool cancelled, bool leased_too) {
  search.stop = true;
  search.cancelled = cancelled;
  // A promotion goes on, since jobs wait for it. It is taken back only if the job was cancelled, no correct kernel is
  // known and no worker has begun to measure it.
  if (!search.promoting()) {
    take_back(search, leased_too);
    if (cancelled && !any_correct(search.input.trials)) search.over.request_stop();
  } else if (cancelled && !any_correct(search.input.trials)) {
    take_back(search, /*leased_too=*/false);
  }
  mark(search);
}

void Searches::promote_interim(Search& search) {
  search.interim = true;
  mark(search);
}

void Searches::needed_now(Search& search) {
  if (!std::exchange(search.background, false)) return;
  for (const auto& [batch_id, batch] : search.open) leases_->set_rules(batch_id, rules_of(search));
}

// Returns the rules by which the batches of the search are ordered.
TeamRules Searches::rules_of(const Search& search) const {
  TeamRules rules = options_.rules(search.row.team);
  if (search.background) rules.priority = kBackground;
  return rules;
}

void Searches::drop_unneeded(std::map<int64_t, Search>::iterator at) {
  if (!at->second.jobs.empty()) return;
  if (at->second.end == Search::End::kOpen) take_back(at->second, true);
  at->second.over.request_stop();
  leases_->arrived(at->first);
  searches_.erase(at);
}

void Searches::leave(int64_t job_id) {
  for (auto at = searches_.begin(); at != searches_.end();) {
    const auto search = at++;
    search->second.jobs.erase(job_id);
    drop_unneeded(search);
  }
}

void Searches::leave(int64_t job_id, int64_t id) {
  const auto at = searches_.find(id);
  if (at == searches_.end()) return;
  at->second.jobs.erase(job_id);
  drop_unneeded(at);
}

}  // namespace wl
