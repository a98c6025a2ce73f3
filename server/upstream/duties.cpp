// The regular work for the upstream, done by one thread: finding out whether the upstream can be reached, offering it
// records that were made here, and checking whether it still serves what was fetched from it.
#include <algorithm>

#include "server/upstream/calls.h"
#include "server/upstream/upstream.h"
#include "spdlog/spdlog.h"

namespace wl {
namespace {

constexpr int kRecordsAtOnce = 64;
// The pause after an offer whose call failed (the upstream takes no offers), before records are offered again.
constexpr auto kOfferAgain = std::chrono::minutes(10);
constexpr auto kLongest = std::chrono::hours(1);

}  // namespace

bool Upstream::stopping() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void Upstream::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  duty_.notify_all();
}

void Upstream::keep() {
  (void)note(calls_->ping(), false);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const bool away = away_;
    woken_ = false;
    lock.unlock();
    say_state();
    if (!away) {
      offer_what_is_new();
      while (check_fetched()) {
      }
    }
    lock.lock();
    if (away_ != away) continue;
    if (!away) {
      Clock::time_point next = std::min(Clock::now() + kLongest, check_from_);
      if (offers_from_ > Clock::now()) next = std::min(next, offers_from_);
      duty_.wait_until(lock, next, [&] { return stopping_ || woken_ || away_; });
      continue;
    }
    duty_.wait_for(lock, backoff_.next(), [&] { return stopping_ || !away_; });
    if (stopping_) return;
    lock.unlock();
    (void)note(calls_->ping(), false);
    lock.lock();
  }
}

// Logs whether the upstream can be reached, once for every change.
void Upstream::say_state() {
  std::string why;
  bool away = false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || !known_ || (said_any_ && away_ == said_away_)) return;
    away = away_;
    why = why_away_;
  }
  const bool first = !said_any_;
  said_any_ = true;
  said_away_ = away;
  if (!away) return spdlog::info("upstream {}: {}", options_.address, first ? "it answers" : "it is back");
  const absl::Status exact = explained(absl::UnavailableError(why), options_.address, options_.dialled);
  why = std::string(exact.message());
  {
    const std::lock_guard lock(mutex_);
    if (away_) why_away_ = why;
  }
  spdlog::warn("upstream {}: cannot be reached, what is here is served without it: {}", options_.address, why);
}

// Offers new records to the upstream. Returns false if some have still to be offered because the upstream cannot be
// reached, the store has an error, or this object is being stopped.
bool Upstream::offer_what_is_new() {
  if (options_.offer == OfferRule::kNone || Clock::now() < offers_from_) return true;
  for (;;) {
    const auto records = parts_.store->unoffered_records(offered_up_to_, kRecordsAtOnce);
    if (!records.ok()) return false;
    if (records->empty()) return true;
    for (const NumberedRecord& record : *records) {
      if (stopping()) return false;
      const absl::Status offered = offer(record.digest);
      if (!offered.ok()) {
        if (absl::IsUnavailable(offered) || absl::IsDeadlineExceeded(offered) || absl::IsUnauthenticated(offered))
          // The records are offered again once the upstream can be reached.
          return false;
        spdlog::warn("upstream {}: it takes no offers: {}", options_.address, std::string(offered.message()));
        offers_from_ = Clock::now() + kOfferAgain;
        return true;
      }
      offered_up_to_ = record.id;
    }
  }
}

// Offers a record to the upstream. Returns OK if this process need not offer the record again.
absl::Status Upstream::offer(const std::string& digest) {
  const auto row = parts_.store->record_by_digest(digest);
  if (!row.ok() || !*row) return absl::OkStatus();
  const KernelRecord& record = (*row)->record;
  if (!is_answered_for(record.measured_by)) return absl::OkStatus();
  if (options_.offer == OfferRule::kConfirmed && !is_confirmed(record)) return absl::OkStatus();
  std::string object;
  if (!record.object_sha256.empty()) {
    const auto found = parts_.store->blob(record.object_sha256);
    if (!found.ok() || !*found) return absl::OkStatus();
    object = **found;
  }
  const auto answer = calls_->offer(record, object);
  WL_RETURN_IF_ERROR(note(answer.status(), true));
  constexpr const char* kNames[] = {"accepted", "known", "refused"};
  parts_.offered(kNames[answer->outcome]);
  if (answer->outcome == UpstreamCalls::Offered::kRefused) {
    const std::lock_guard lock(mutex_);
    if (say_now()) spdlog::warn("upstream {}: refuses the record {}: {}", options_.address, digest, answer->why);
    return absl::OkStatus();
  }
  if (const absl::Status stored = parts_.store->set_offered(digest); !stored.ok())
    spdlog::error("record {} will be offered once more: {}", digest, std::string(stored.message()));
  return absl::OkStatus();
}

// Compares the next of the records that were fetched earlier with those that the upstream serves now. Returns true if
// there may be more records to compare.
bool Upstream::check_fetched() {
  if (Clock::now() < check_from_ || stopping()) return false;
  const auto over = [&] {
    checked_up_to_ = 0;
    check_from_ =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.check_s));
    return false;
  };
  // A head (StoreHead) says below which generation the records of a signer are no longer valid. The upstream raises a
  // head after it has signed its records anew, possibly while a pass over the records runs here, which then compares
  // some records too early. So heads are asked for before the pass and stored after it: every record here is then at
  // least as new as the heads demand.
  if (checked_up_to_ == 0) heads_ = calls_->heads({id_});
  const auto records = parts_.store->fetched_records(checked_up_to_, kRecordsAtOnce);
  if (!records.ok()) return over();
  if (records->empty()) {
    exchange_heads();
    return over();
  }
  const auto there = calls_->serves(*records, {id_});
  if (const absl::Status heard = note(there.status(), true); !heard.ok()) {
    if (problem().empty())
      spdlog::warn("upstream {}: what was fetched cannot be compared: {}", options_.address,
                   std::string(heard.message()));
    return over();
  }
  for (size_t i = 0; i < there->value.size(); ++i) {
    const NumberedRecord& record = (*records)[i];
    checked_up_to_ = record.id;
    // If the upstream lacks the record and could not ask its own upstream, which may have it, the record stays here as
    // it is.
    if (there->value[i].digest.empty() && !there->problem.empty()) continue;
    compare(record, there->value[i]);
  }
  return true;
}

// Updates a fetched record. `there`: the record that the upstream serves now. It may be the same record, perhaps signed
// again; another record, because a better one was found; or none (digest ""), because the record was revoked or
// invalidated.
void Upstream::compare(const NumberedRecord& record, const KernelRecord& there) {
  if (there.digest == record.digest) return sign_anew(there);
  if (!there.digest.empty()) {
    (void)outcome_of({Question::kKey, record.key, record.environment}, {id_});
    return;
  }
  if (const absl::Status dropped = parts_.store->drop_fetched(record.digest); !dropped.ok()) return;
  parts_.changed(record.key);
  spdlog::info("upstream {}: no longer has the record {} of key {}, which is dropped", options_.address, record.digest,
               record.key);
}

void Upstream::sign_anew(const KernelRecord& there) {
  const auto taken = parts_.store->take_signature(there, RecordOrigin::kUpstream);
  if (taken.ok() && *taken) parts_.changed(there.key);
}

void Upstream::exchange_heads() {
  const absl::Status heard = heads_.ok() ? parts_.store->put_heads(*heads_) : heads_.status();
  if (stopping()) return;
  if (!heard.ok())
    spdlog::warn("upstream {}: what it says of old records is not known: {}", options_.address,
                 std::string(heard.message()));
  if (options_.offer == OfferRule::kNone) return;
  const auto heads = heads_of(*parts_.store);
  if (!heads.ok() || heads->empty()) return;
  // A raised head (StoreHead) makes the old signatures of offered records invalid. The newly signed records are
  // therefore offered before the head.
  std::map<std::string, int64_t> oldest;
  for (const StoreHead& head : *heads) oldest[head.signed_by] = head.oldest;
  if (oldest != told_) {
    offered_up_to_ = 0;
    if (!offer_what_is_new()) return;
  }
  const absl::Status told = calls_->offer_heads(*heads);
  if (told.ok()) {
    told_ = std::move(oldest);
  } else if (!stopping()) {
    spdlog::warn("upstream {}: cannot be told what is said here of old records: {}", options_.address,
                 std::string(told.message()));
  }
}

// Stores the upstream's head of one signer, of whom no head is stored yet. The upstream's heads of other signers are
// stored at the next check, since records of those signers here may have been compared before the upstream signed them
// anew.
absl::Status Upstream::hear_head(const std::string& signer) {
  WL_ASSIGN_OR_RETURN(std::vector<StoreHead> heads, calls_->heads({id_}));
  std::erase_if(heads, [&](const StoreHead& head) { return head.signed_by != signer; });
  return parts_.store->put_heads(heads);
}

}  // namespace wl
