// The part of Leases that ends leases without a report.
#include "server/engine/lease_ends.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_join.h"
#include "proto/log.h"
#include "server/engine/leases.h"

namespace wl {
namespace {

constexpr size_t kLossesUntilSplit = 2, kLossesUntilCondemned = 3;
// If the probability that a batch lost so many workers by chance is below this limit, the losses are blamed on the
// batch.
constexpr double kStrange = 0.01;

// Returns the rows of the store for the two halves of a batch. Losses of workers that had the whole batch do not count
// for its halves.
std::vector<BatchRow> halves_of(const BatchRow& whole, const Batch& batch) {
  std::vector<BatchRow> halves(2);
  const size_t middle = batch.candidates.size() / 2;
  for (size_t i = 0; i < batch.candidates.size(); ++i)
    halves[i < middle ? 0 : 1].candidates.push_back({batch.candidates[i].trial, batch.candidates[i].plan});
  for (size_t half = 0; half < halves.size(); ++half) {
    BatchRow& row = halves[half];
    row.id = cat(whole.id, "/", half);
    row.search_id = whole.search_id;
    row.phase = whole.phase;
    row.first_trial = row.candidates.front().trial;
    row.size = static_cast<int64_t>(row.candidates.size());
    row.check_seed = whole.check_seed;
  }
  return halves;
}

// Returns the part of a batch that `row` describes: a copy with the id and only the candidates of the row.
std::shared_ptr<const Batch> part_of(const Batch& batch, const BatchRow& row) {
  auto part = std::make_shared<Batch>(batch);
  part->id = row.id;
  std::erase_if(part->candidates, [&](const Candidate& candidate) {
    return std::none_of(row.candidates.begin(), row.candidates.end(),
                        [&](const PlannedTrial& kept) { return kept.trial == candidate.trial; });
  });
  return part;
}

}  // namespace

LossVerdict verdict_on(const Evidence& evidence) {
  const size_t losses = evidence.lost_on.size();
  if (evidence.candidates > 1) return losses < kLossesUntilSplit ? LossVerdict::kAgain : LossVerdict::kSplit;
  const std::set<std::string> workers(evidence.lost_on.begin(), evidence.lost_on.end());
  const bool several = workers.size() > 1 || evidence.others == 0;
  const bool strange = std::pow(evidence.usual_loss, static_cast<double>(losses)) < kStrange;
  return losses >= kLossesUntilCondemned && several && strange ? LossVerdict::kCondemn : LossVerdict::kAgain;
}

// Returns the estimated share of leases that end with a lost worker, by the rule of succession: 1/2 while no lease has
// ended. Losses of the batch `item`, and of the batches from which it was split, are not counted.
double Leases::usual_loss(const Item& item) const {
  const std::lock_guard lock(mutex_);
  const double others = std::max(0.0, static_cast<double>(losses_) - static_cast<double>(item.lost_on.size()) -
                                          static_cast<double>(item.lost_before));
  return (others + 1) / (others + static_cast<double>(reports_) + 2);
}

// Returns the live workers that could measure the batch and were not lost with it.
std::vector<std::string> Leases::others_for(const Item& item) const {
  std::vector<std::string> names = workers_->names_serving(item.offer.device, item.offer.team);
  std::erase_if(names, [&](const std::string& name) {
    return bars(item, name, workers_->machine_of(name)) ||
           std::find(item.lost_on.begin(), item.lost_on.end(), name) != item.lost_on.end();
  });
  return names;
}

// Returns the workers, principals and machines that do not get the batch: those that must not or cannot measure it and,
// while there are other workers, those that were lost with it or kept batches too long (overdue.h).
std::set<std::string> Leases::avoided(const Item& item) const {
  std::set<std::string> names = item.unable;
  names.insert(item.offer.not_by.begin(), item.offer.not_by.end());
  {
    const std::lock_guard lock(mutex_);
    if (item.lost_on.empty() && overdue_.nobody_is_noted()) return names;
  }
  const std::vector<std::string> others = others_for(item);
  if (!item.lost_on.empty() && !others.empty()) names.insert(item.lost_on.begin(), item.lost_on.end());
  const std::lock_guard lock(mutex_);
  const std::vector<std::string> last = overdue_.last_of(others, Clock::now());
  names.insert(last.begin(), last.end());
  return names;
}

// Returns the leases that have lasted too long: longer than any worker may take or, if another worker that may get the
// batch waits for work, longer than usual.
std::vector<Leases::Owned> Leases::overdue() const {
  const Clock::time_point now = Clock::now();
  std::vector<Owned> over;
  std::vector<std::pair<Owned, Item>> slow;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, item] : items_) {
      if (item.state != Item::State::kLeased) continue;
      const Batch& batch = *item.offer.batch;
      const Owned owned{id, {item.lease_id, item.attempt}};
      const double held_s = item.held_s(now);
      if (held_s > Overdue::most_seconds(batch))
        over.push_back(owned);
      else if (!item.waits() && held_s > overdue_.patience(item.offer.device.fingerprint(), batch, item.overdue))
        slow.emplace_back(owned, item);
    }
  }
  for (const auto& [owned, item] : slow) {
    const std::vector<std::string> waiting = workers_->names_waiting(item.offer.device, item.offer.team);
    if (std::any_of(waiting.begin(), waiting.end(), [&, &item = item](const std::string& name) {
          return name != name_of_process(item.worker) && !bars(item, name, workers_->machine_of(name));
        }))
      over.push_back(owned);
  }
  return over;
}

bool Leases::can_be_had(const std::string& batch_id) const {
  Item item;
  {
    const std::lock_guard lock(mutex_);
    const auto at = items_.find(batch_id);
    if (at == items_.end() || at->second.state != Item::State::kReady) return true;
    item = at->second;
  }
  if (Clock::now() - begun_ < workers_->away()) return true;
  const std::vector<std::string> here = workers_->names_here(item.offer.device, item.offer.team);
  return std::any_of(here.begin(), here.end(),
                     [&](const std::string& name) { return !bars(item, name, workers_->machine_of(name)); });
}

void Leases::end(const Owned& owned, LeaseEnd why) {
  std::string name;
  bool lost = why == LeaseEnd::kExpired || why == LeaseEnd::kSuperseded;
  {
    const std::lock_guard lock(mutex_);
    const auto at = items_.find(owned.batch_id);
    if (at == items_.end() || at->second.lease_id != owned.lease.lease_id) return;
    if (at->second.state != Item::State::kLeased) return;
    name = name_of_process(at->second.worker);
    // If the lease is older than this process and was not renewed since, the worker may have failed to reach the
    // coordinator, so it does not count as lost.
    lost = lost && !at->second.restored;
    at->second.state = Item::State::kJudged;
  }
  const auto lost_on = store_->release_lease(owned.lease.lease_id, owned.lease.attempt, lost ? name : std::string());
  Item item;
  absl::Status upload;
  {
    const std::lock_guard lock(mutex_);
    const auto at = items_.find(owned.batch_id);
    if (at == items_.end()) return;
    if (why == LeaseEnd::kUnable && upload_failure_ && upload_failure_->first >= at->second.granted)
      upload = upload_failure_->second;
    if (lost_on.ok()) {
      ready_.over(owned.batch_id);
      at->second.lease_id.clear();
      next_of(std::exchange(at->second.worker, ""));
      at->second.restored = false;
      at->second.lost_on = *lost_on;
      losses_ += lost ? 1 : 0;
      if (why == LeaseEnd::kUnable && upload.ok()) at->second.unable.insert(name);
      if (why == LeaseEnd::kOverdue) {
        overdue_.noted(name, Clock::now());
        ++at->second.overdue;
      }
    } else {
      // NotFound: the batch was reported just now. After any other error, a later tick tries to end the lease again.
      at->second.state = Item::State::kLeased;
    }
    item = at->second;
  }
  // The search is told of the failed upload of an object even if the store could not end the lease: a full disk may
  // refuse both writes.
  if (!upload.ok()) callbacks_.store_failed(item.offer.search_id, upload);
  if (!lost_on.ok()) return;
  callbacks_.ended(why);
  if (lost || why == LeaseEnd::kOverdue)
    log_line(spdlog::level::warn,
             lost ? "a worker was lost while it had a batch" : "a worker has had a batch for too long",
             {{"worker", name},
              {"batch", owned.batch_id},
              {"lease", owned.lease.lease_id},
              {"trace", item.offer.batch->trace}});
  // A batch of chains counts as one candidate and is never split, since its chains are compared with each other.
  switch (verdict_on({.lost_on = item.lost_on,
                      .candidates = item.offer.batch->chains.empty() ? item.offer.batch->candidates.size() : 1,
                      .others = others_for(item).size(),
                      .usual_loss = usual_loss(item)})) {
    case LossVerdict::kAgain:
      return ready_again(owned.batch_id, avoided(item));
    case LossVerdict::kSplit:
      return split(item);
    case LossVerdict::kCondemn:
      return condemn(item);
  }
}

void Leases::ready_again(const std::string& batch_id, std::set<std::string> avoid) {
  const std::lock_guard lock(mutex_);
  const auto at = items_.find(batch_id);
  if (at == items_.end()) return;
  at->second.state = Item::State::kReady;
  at->second.avoid = std::move(avoid);
  put_ready(batch_id, at->second);
}

void Leases::split(const Item& item) {
  const Batch& whole = *item.offer.batch;
  const std::vector<BatchRow> rows = halves_of(item.offer.row, whole);
  const absl::Status done = store_->split_batch(whole.id, rows);
  if (!done.ok()) {
    ready_again(whole.id, avoided(item));
    return callbacks_.store_failed(item.offer.search_id, done);
  }
  // The search must know the halves before a worker can report one.
  callbacks_.split(item.offer.search_id, whole.id, rows);
  const std::set<std::string> avoid = avoided(item);
  const std::lock_guard lock(mutex_);
  items_.erase(whole.id);
  for (const BatchRow& row : rows) {
    Item half;
    half.offer = item.offer;
    half.offer.row = row;
    half.offer.batch = part_of(whole, row);
    half.unable = item.unable;
    half.lost_before = item.lost_before + item.lost_on.size();
    half.avoid = avoid;
    put_ready(row.id, items_.insert_or_assign(row.id, std::move(half)).first->second);
  }
}

void Leases::condemn(const Item& item) {
  const Batch& batch = *item.offer.batch;
  const std::set<std::string> workers(item.lost_on.begin(), item.lost_on.end());
  std::vector<Trial> trials;
  for (const PlannedTrial& of : reported_of(batch))
    trials.push_back(failed_trial(of, cat("given up: ", item.lost_on.size(), " processes of worker ",
                                          absl::StrJoin(workers, ", "), " were lost while they had it alone")));
  const absl::Status abandoned = store_->abandon_batch(batch.id, trials);
  if (!abandoned.ok()) {
    ready_again(batch.id, avoided(item));
    return callbacks_.store_failed(item.offer.search_id, abandoned);
  }
  callbacks_.stored(item.offer.search_id, batch.id, trials, "");
  const std::lock_guard lock(mutex_);
  items_.erase(batch.id);
}

void Leases::welcome(const std::string& name) {
  const std::string machine = workers_->machine_of(name);
  const std::lock_guard lock(mutex_);
  for (auto& [id, item] : items_) {
    item.unable.erase(name);
    if (bars(item, name, machine)) continue;
    if (item.avoid.erase(name) == 0 || item.state != Item::State::kReady) continue;
    ready_.drop(id);
    put_ready(id, item);
  }
}

void Leases::expire() {
  const Clock::time_point now = Clock::now();
  std::vector<Owned> over;
  std::vector<Item> avoiding;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, item] : items_) {
      if (item.state == Item::State::kLeased && item.expires < now) over.push_back({id, {item.lease_id, item.attempt}});
      if (item.state == Item::State::kReady && !item.avoid.empty()) avoiding.push_back(item);
    }
    std::erase_if(cancelled_, [&](const auto& entry) { return entry.second + 4 * term_ < now; });
    overdue_.forget(now);
  }
  for (const Owned& owned : over) end(owned, LeaseEnd::kExpired);
  for (const Owned& owned : overdue()) end(owned, LeaseEnd::kOverdue);
  // The workers that must not get a ready batch are determined again: some were avoided only while there were other
  // workers, and these may be gone.
  for (const Item& item : avoiding) {
    const std::set<std::string> avoid = avoided(item);
    const std::lock_guard lock(mutex_);
    const auto at = items_.find(item.offer.row.id);
    if (at == items_.end() || at->second.state != Item::State::kReady || at->second.avoid == avoid) continue;
    at->second.avoid = avoid;
    ready_.drop(item.offer.row.id);
    put_ready(item.offer.row.id, at->second);
  }
}

}  // namespace wl
