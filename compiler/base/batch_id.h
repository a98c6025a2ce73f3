// The ids of batches (sets of candidates that a worker leases at once). A coordinator makes these ids, and a worker can
// tell by them which batches belong to one search.
#pragma once

#include <cstdint>
#include <string>

namespace wl {

// Returns the id of the batch that begins with trial `first_trial` of search number `search`: "s12/p0/t64". `phase` is
// Batch::phase.
std::string batch_id(int64_t search, int64_t phase, int64_t first_trial);
// Returns the part of an id that all batches of one search share and that no batch of another search of the same
// coordinator has: "s12".
std::string search_of(const std::string& batch_id);

}  // namespace wl
