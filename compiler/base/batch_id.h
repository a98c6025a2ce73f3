// The ids of batches (sets of candidates that a worker leases at once). A coordinator makes these ids, and a worker can
// tell by them which batches belong to one search.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace wl {

// Returns the id of the batch that begins with trial `first_trial` of search number `search`: "s12/p0/t64". `phase` is
// Batch::phase.
inline std::string batch_id(int64_t search, int64_t phase, int64_t first_trial) {
  return absl::StrCat("s", search, "/p", phase, "/t", first_trial);
}
// Returns the part of an id that all batches of one search share and that no batch of another search of the same
// coordinator has: "s12".
inline std::string search_of(const std::string& batch_id) {
  return batch_id.substr(0, batch_id.find('/'));
}

}  // namespace wl
