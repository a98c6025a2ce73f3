#include "server/services/offers.h"

#include "spdlog/spdlog.h"

namespace wl {
namespace {

OfferTaken refused(const KernelRecord& record, std::string why) {
  spdlog::warn("an offered record {} of key {} is refused: {}", record.digest, record.key, why);
  return {OfferTaken::kRefused, std::move(why)};
}

// Whether an offered record is not stored yet and is faster than the record that the namespace of `team` ("": the
// shared namespace) serves for its key. Promotions into the shared namespace follow the same rule.
absl::StatusOr<bool> is_better(Store& store, const KernelRecord& record, const std::string& team) {
  WL_ASSIGN_OR_RETURN(const std::optional<RecordRow> same, store.record_by_digest(record.digest));
  // A record that is stored already is not better, whether it is served or not.
  if (same && (same->team.empty() || same->team == team)) return false;
  WL_ASSIGN_OR_RETURN(const std::optional<RecordRow> known,
                      store.record_by_key(record.key, record.environment, {.team = team}));
  if (!known || known->team != team) return true;
  return undisturbed_ns(record.samples_ns) < undisturbed_ns(known->record.samples_ns);
}

}  // namespace

std::string why_not_by_producer(const Authorizer* authorizer, const KernelRecord& record) {
  if (authorizer == nullptr) return "";
  for (const std::string& worker : {record.measured_by, record.confirmed_by}) {
    if (worker.empty() || !authorizer->bars(principal_of(worker))) continue;
    return cat("its producer ", shown_name(principal_of(worker)),
               " is revoked here: the file of --callers gives it no role");
  }
  return "";
}

absl::StatusOr<OfferTaken> take_offer(const Serving& serving, const Reader& caller, const KernelRecord& record) {
  if (serving.signers->empty()) {
    return absl::FailedPreconditionError(
        "this coordinator takes no offers: it knows no keys of other coordinators; start it with --signers FILE");
  }
  if (const absl::Status trusted = check_signature(record, *serving.signers); !trusted.ok())
    return refused(record, std::string(trusted.message()));
  WL_ASSIGN_OR_RETURN(const std::optional<StoreHead> head, serving.store->head_of(record.signed_by));
  if (std::string why = head ? why_too_old(record, *head) : ""; !why.empty()) return refused(record, std::move(why));
  if (std::string why = why_not_by_producer(serving.authorizer, record); !why.empty())
    return refused(record, std::move(why));
  if (undisturbed_ns(record.samples_ns) <= 0) return refused(record, "it has no samples");
  if (!is_answered_for(record.measured_by))
    return refused(record, "nobody who is known answers for the worker that measured it");
  const bool of_team = !caller.team.empty();
  const bool shared =
      is_confirmed(record) &&
      (!of_team || (serving.authorizer != nullptr && serving.authorizer->rules_of(caller.team).publishes));
  if (!shared && !of_team)
    return refused(record, "nobody has confirmed it, so it cannot be shared (--offer confirmed)");
  const std::string into = shared ? std::string() : caller.team;
  WL_ASSIGN_OR_RETURN(const bool better, is_better(*serving.store, record, into));
  if (better) {
    WL_RETURN_IF_ERROR(serving.store->take_record(record, RecordOrigin::kBelow, /*by_key=*/true, into));
  } else {
    WL_ASSIGN_OR_RETURN(const bool signed_anew, serving.store->take_signature(record, RecordOrigin::kBelow));
    if (!signed_anew) return OfferTaken{.outcome = OfferTaken::kKnown};
  }
  serving.replies->drop(record.key);
  if (serving.upstream != nullptr) serving.upstream->wake();
  return OfferTaken{.outcome = better ? OfferTaken::kAccepted : OfferTaken::kKnown};
}

}  // namespace wl
