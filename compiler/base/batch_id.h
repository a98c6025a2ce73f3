// The names of batches: a coordinator makes them, and a worker sees by them which batches are of one search.
#pragma once

#include <cstdint>
#include <string>

namespace wl {

// The id of the batch of a search that begins with trial `first_trial`. `phase`: as in Batch.
std::string batch_id(int64_t search, int64_t phase, int64_t first_trial);
// The part of an id that all batches of one search share, and no other batch of the same coordinator has.
std::string search_of(const std::string& batch_id);

}  // namespace wl
