// Records that coordinators below this one offer.
#pragma once

#include "server/services/services.h"

namespace wl {

struct OfferTaken {
  enum Outcome { kAccepted, kKnown, kRefused } outcome = kRefused;
  std::string why = {};  // of a refusal
};

// Takes a record whose digest was checked, from a caller of a team, or of none. FailedPrecondition: this coordinator
// takes no offers, or the record's object is not here. Otherwise errors of the store.
absl::StatusOr<OfferTaken> take_offer(const Serving& serving, const Reader& caller, const KernelRecord& record);

// Why a record that another coordinator made is not taken, by who produced it; "": it may be.
std::string why_not_by_producer(const Authorizer* authorizer, const KernelRecord& record);

}  // namespace wl
