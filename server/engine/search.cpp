// Searches: rounds become batches, reports become trials, promotions become records.
#include <algorithm>
#include <random>

#include "server/engine/state.h"

namespace wl {
namespace {

uint64_t unpredictable() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 31) ^ device();
}

// ns of timing per candidate while searching: enough to rank; the finalists are timed for longer, side by side.
constexpr int64_t kSearchBudget = 60'000'000;
constexpr int64_t kMostPromotions = 4;  // of a search: a disturbed one is repeated

Recipe recipe_for(const Search& search, bool cold, bool promotion) {
  Recipe recipe;
  recipe.cold = cold;
  recipe.interleave = promotion;
  if (promotion) return recipe;
  recipe.budget_ns = kSearchBudget;
  recipe.best_ns = static_cast<int64_t>(best_ns(search.input.trials));
  return recipe;
}

int64_t launches_of(const PlannedGroup& group) {
  return std::max({group.fused_count, group.between_count, group.part_count});
}

// What a worker judges the code of GPU kernels by.
CodeLimits limits_of(const Device& device) {
  const auto row = target_named(device.target);
  return row.ok() ? code_limits((*row)->gpu) : CodeLimits{};
}

}  // namespace

absl::StatusOr<Search> Engine::Impl::open(const SearchRow& row, const PlannedGroup& group, const Device& device,
                                          const Machine& machine) {
  Search search;
  search.row = row;
  search.group = group;
  search.device = device;
  auto opened = compiler->open(group.graph, machine);
  if (!opened.ok()) {
    // The group has no schedule at all: its parts may still have one.
    search.end = Search::End::kNothing;
    return search;
  }
  search.compiler = *std::move(opened);
  search.input.compiler = search.compiler.get();
  search.input.strategy = row.strategy;
  search.input.seed = row.seed;
  const std::lock_guard alone(taking_up);
  WL_ASSIGN_OR_RETURN(std::vector<PhaseTrial> trials, store->trials(row.id));
  WL_ASSIGN_OR_RETURN(std::vector<BatchRow> batches, store->open_batches(row.id));
  int64_t complete = std::numeric_limits<int64_t>::max();
  for (BatchRow& batch : batches) {
    if (batch.phase == 0) complete = batch.first_trial;
    search.phase = std::max(search.phase, batch.phase);
    search.rebuild = std::move(batch);
  }
  bool promoted_any = false, promoted_right = false;
  for (PhaseTrial& item : trials) {
    search.phase = std::max(search.phase, item.phase);
    if (item.phase == 0 && item.trial.trial >= complete) continue;
    if (item.phase == 0) search.input.trials.push_back(item.trial);
    promoted_any |= item.phase > 0;
    promoted_right |= item.phase > 0 && item.trial.outcome == Outcome::kCorrect;
    search.all.push_back(std::move(item));
  }
  search.gave_up_default = promoted_any && !promoted_right;
  if (search.rebuild) {
    const std::lock_guard lock(mutex);
    rebuilding.insert(row.id);
  }
  return search;
}

void Engine::Impl::ask_checks(Search& search) {
  if (search.checks_asked) return;
  search.checks_asked = true;
  search.check_seeds = {first_check_seed(search.group.key), unpredictable()};
  compute([this, id = search.row.id, seeds = search.check_seeds, group = search.group.graph,
           machine = machine_of(search.device)] {
    // A compiler object of its own: the engine's thread uses the other one meanwhile.
    absl::StatusOr<std::vector<Check>> checks = std::vector<Check>();
    absl::StatusOr<std::unique_ptr<GroupCompiler>> opened =
        machine.ok() ? compiler->open(group, *machine)
                     : absl::StatusOr<std::unique_ptr<GroupCompiler>>(machine.status());
    if (!opened.ok()) checks = opened.status();
    for (size_t i = 0; checks.ok() && i < seeds.size(); ++i) {
      auto check = (*opened)->check(seeds[i]);
      if (check.ok()) {
        checks->push_back(*std::move(check));
      } else {
        checks = check.status();
      }
    }
    post([this, id, made = std::move(checks)] {
      const auto found = searches.find(id);
      if (found == searches.end()) return;
      if (!made.ok()) return fail_jobs_of(found->second, made.status());
      found->second.checks = *made;
      mark(id);
    });
  });
}

void Engine::Impl::step(Search& search) {
  if (search.end != Search::End::kOpen || !search.outstanding.empty()) return;
  if (search.cancelled && !any_correct(search.input.trials)) return end_search(search, Search::End::kNothing);
  if (search.checks.empty()) return ask_checks(search);
  absl::Status status;
  if (search.rebuild) status = rebuild(search);
  while (status.ok() && search.outstanding.empty() && search.end == Search::End::kOpen) {
    if (search.elsewhere) {
      status = offer(search, transfer_round(search.input, ++search.phase, *search.elsewhere), std::nullopt);
      continue;
    }
    if (!search.stop && !search.exhausted && (search.input.wanted > 1 || search.gave_up_default)) {
      // Where time is short, others need it more.
      if (search.budget_s > 0 && is_spent(standing(search))) {
        search.exhausted = true;
        continue;
      }
      SearchInput input = search.input;
      if (search.gave_up_default) input.wanted = std::max<int64_t>(input.wanted, kRoundSize);
      Round round = next_round(input);
      search.exhausted = round.size == 0;
      if (!search.exhausted) status = offer(search, std::move(round), std::nullopt);
      continue;
    }
    Round round = final_round(search.input, ++search.phase, search.cancelled ? 2 : kFinalists);
    if (round.size == 0) return end_search(search, Search::End::kNothing);
    if (!round.candidates.empty()) {
      status = offer(search, std::move(round), std::nullopt);
    } else if (search.gave_up_default || search.stop) {
      return end_search(search, Search::End::kNothing);
    } else {
      search.gave_up_default = true;
    }
  }
  if (!status.ok()) fail_jobs_of(search, status);
}

Standing Engine::Impl::standing(const Search& search) const {
  return standing_of(search.input, launches_of(search.group), search.bound_ns);
}

// Compared with the searches that it shares a job with. Promotions are due at once: they free the job.
double Engine::Impl::due_of(const Search& search, const Round& round) const {
  if (round.phase > 0) return 0;
  double largest = 0;
  for (const auto& [id, found] : searches) {
    const Search& other = found;  // clang-tidy's clang lets no lambda capture a structured binding
    const bool beside =
        other.end == Search::End::kOpen &&
        std::any_of(search.jobs.begin(), search.jobs.end(), [&](int64_t job) { return other.jobs.contains(job); });
    if (beside) largest = std::max(largest, expected_saving(standing(other)));
  }
  return due(round.first / kRoundSize, expected_saving(standing(search)), largest);
}

absl::Status Engine::Impl::offer(Search& search, Round round, const std::optional<BatchRow>& known) {
  const bool promotion = round.phase > 0;
  if (promotion) round.rejected.clear();
  std::optional<BatchRow> row = known;
  if (!row) {
    if (!round.candidates.empty()) {
      row.emplace();
      row->id = cat("s", search.row.id, "/p", round.phase, "/t", round.first);
      row->search_id = search.row.id;
      row->phase = round.phase;
      row->first_trial = round.first;
      row->size = round.size;
      row->check_seed = promotion ? search.check_seeds.back() : 0;
    }
    WL_RETURN_IF_ERROR(store->put_round(row, search.row.id, round.phase, round.rejected));
  }
  if (!row) {
    for (Trial& trial : round.rejected) {
      search.all.push_back({0, trial});
      search.input.trials.push_back(std::move(trial));
    }
    return absl::OkStatus();
  }
  bool cold = false;
  for (int64_t id : search.jobs) cold = jobs.at(id).row.options.cold;
  auto batch = std::make_shared<Batch>();
  batch->id = row->id;
  batch->problem = search.group.problem;
  batch->checks.assign(search.checks.begin(), search.checks.begin() + (promotion ? 2 : 1));
  batch->recipe = recipe_for(search, cold, promotion);
  batch->candidates = std::move(round.candidates);
  batch->keep_objects = promotion;
  batch->limits = limits_of(search.device);
  search.outstanding = row->id;
  search.rejected = std::move(round.rejected);

  Outstanding item;
  item.batch = std::move(batch);
  item.search_id = search.row.id;
  item.device = search.device;
  item.order = {due_of(search, round), search.jobs.empty() ? 0 : *search.jobs.begin(),
                -static_cast<double>(launches_of(search.group) * search.group.bytes)};
  item.attempt = row->attempt;
  if (row->leased) {
    // It gets one full term: its worker may still be at it.
    item.state = Outstanding::State::kLeased;
    item.lease_id = row->lease_id;
    item.worker = row->worker;
    item.moved = Clock::now();
    item.expires =
        item.moved + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.lease_s));
  }
  const std::lock_guard lock(mutex);
  outstanding.insert_or_assign(row->id, std::move(item));
  work_changed.notify_all();
  return absl::OkStatus();
}

// The round that was open when the coordinator went down, proposed again. One that cannot be (another version made it,
// or it was a promotion, whose second seed is not for reuse) is taken back and made anew.
absl::Status Engine::Impl::rebuild(Search& search) {
  const BatchRow row = *std::exchange(search.rebuild, std::nullopt);
  absl::Status status;
  Round round;
  if (row.phase == 0 && !search.stop) {
    SearchInput input = search.input;
    input.wanted = row.first_trial + row.size;
    round = next_round(input);
  }
  if (row.phase == 0 && round.first == row.first_trial && round.size == row.size && !round.candidates.empty()) {
    status = offer(search, std::move(round), row);
  } else {
    status = store->drop_batch(row.id).status();
  }
  const std::lock_guard lock(mutex);
  rebuilding.erase(search.row.id);
  return status;
}

void Engine::Impl::on_trials(int64_t search_id, const std::string& batch_id, std::vector<Trial> trials) {
  const auto found = searches.find(search_id);
  if (found == searches.end() || found->second.outstanding != batch_id) return;
  Search& search = found->second;
  const bool promotion = batch_id.find("/p0/") == std::string::npos;
  search.outstanding.clear();
  for (Trial& trial : search.rejected) trials.push_back(std::move(trial));
  search.rejected.clear();
  std::sort(trials.begin(), trials.end(), [](const Trial& a, const Trial& b) { return a.trial < b.trial; });
  for (Trial& trial : trials) {
    search.all.push_back({promotion ? search.phase : 0, trial});
    if (!promotion) search.input.trials.push_back(std::move(trial));
  }
  if (promotion) {
    const absl::Status status = conclude(search);
    if (!status.ok()) fail_jobs_of(search, status);
    return;
  }
  mark(search_id);
  for (int64_t id : search.jobs) publish(jobs.at(id));
}

absl::Status Engine::Impl::conclude(Search& search) {
  std::vector<Trial> finals, all;
  for (const PhaseTrial& item : search.all) {
    if (item.phase == search.phase) finals.push_back(item.trial);
    all.push_back(item.trial);
  }
  const bool may_repeat = search.phase < kMostPromotions && !search.stop && !search.elsewhere;
  if (may_repeat && is_disturbed(finals, search.input.trials)) {
    mark(search.row.id);
    return absl::OkStatus();
  }
  SearchInput input = search.input;
  // What was cut short may be searched on: it counts as a wish for what it got.
  if (search.cancelled) input.wanted = std::max<int64_t>(1, static_cast<int64_t>(input.trials.size()));
  const std::optional<KernelRecord> elsewhere = std::exchange(search.elsewhere, std::nullopt);
  double budget_s = search.budget_s;
  if (elsewhere) {
    input.strategy = elsewhere->strategy;
    input.wanted = elsewhere->trials_asked;
    budget_s = elsewhere->budget_s;
  }
  WL_ASSIGN_OR_RETURN(std::optional<KernelRecord> record,
                      record_of_finals(input, search.group, search.device, finals, all, search.check_seeds, budget_s));
  if (elsewhere && !holds_here(*elsewhere, finals)) {
    mark(search.row.id);
    return absl::OkStatus();
  }
  if (!record) {
    if (search.gave_up_default || search.input.wanted > 1 || search.stop) {
      end_search(search, Search::End::kNothing);
    } else {
      search.gave_up_default = true;
      mark(search.row.id);
    }
    return absl::OkStatus();
  }
  if (search.stop) {
    // What was cut short, a --retune above all, does not displace a better record.
    WL_ASSIGN_OR_RETURN(std::optional<RecordRow> known, store->record_by_key(record->key, record->environment));
    if (known && undisturbed_ns(known->record.samples_ns) <= undisturbed_ns(record->samples_ns)) {
      for (int64_t id : search.jobs) jobs.at(id).records.insert_or_assign(search.group.key, known->record);
      end_search(search, Search::End::kRecord);
      return absl::OkStatus();
    }
  }
  WL_RETURN_IF_ERROR(store->promote(*record, search.row.id));
  for (int64_t id : search.jobs) {
    ActiveJob& job = jobs.at(id);
    job.records.insert_or_assign(search.group.key, *record);
    job.searched.insert(search.group.key);
    if (elsewhere) job.transferred.insert(search.group.key);
  }
  end_search(search, Search::End::kRecord);
  return absl::OkStatus();
}

// `search` may be gone afterwards: the last job that wanted it may be done.
void Engine::Impl::end_search(Search& search, Search::End end) {
  search.end = end;
  const std::set<int64_t> waiting = search.jobs;
  for (int64_t id : waiting) advance(id);
}

void Engine::Impl::fail_jobs_of(const Search& search, const absl::Status& status) {
  const std::set<int64_t> waiting = search.jobs;
  for (int64_t id : waiting) {
    if (const auto job = jobs.find(id); job != jobs.end()) finish(job->second, JobState::kFailed, status);
  }
}

// Takes the open round back. False: it stays, or its report was faster.
bool Engine::Impl::drop(Search& search, bool leased_too) {
  const std::string id = search.rebuild ? search.rebuild->id : search.outstanding;
  if (id.empty()) return false;
  std::string lease = search.rebuild ? search.rebuild->lease_id : std::string();
  {
    const std::lock_guard lock(mutex);
    if (const auto item = outstanding.find(id); item != outstanding.end()) {
      if (item->second.state == Outstanding::State::kLeasing) return false;
      if (item->second.state == Outstanding::State::kLeased && !leased_too) return false;
      lease = item->second.lease_id;
    }
  }
  const auto dropped = store->drop_batch(id);
  if (!dropped.ok() || !*dropped) return false;
  search.rebuild.reset();
  search.outstanding.clear();
  search.rejected.clear();
  const std::lock_guard lock(mutex);
  outstanding.erase(id);
  rebuilding.erase(search.row.id);
  if (!lease.empty()) cancelled.insert(lease);
  return true;
}

}  // namespace wl
