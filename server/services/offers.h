// Decides whether this coordinator stores records that other coordinators offer to it as their upstream.
#pragma once

#include "server/services/services.h"

namespace wl {

struct OfferTaken {
  // kKnown: the record is stored already, or is not faster than the one that is served.
  enum Outcome { kAccepted, kKnown, kRefused } outcome = kRefused;
  std::string why = {};  // why the record was refused
};

// Stores an offered record, or says why not. The caller of this function has checked the record's digest. `caller`: the
// team of the coordinator that offers the record. FailedPrecondition: this coordinator takes no offers, or the record's
// object is not stored here. Other errors are those of the store.
absl::StatusOr<OfferTaken> take_offer(const Serving& serving, const Reader& caller, const KernelRecord& record);

// Returns why a record of another coordinator is refused because of its producer; "": it is not.
std::string why_not_by_producer(const Authorizer* authorizer, const KernelRecord& record);

}  // namespace wl
