// A device whose times are a function of the source text: the same on every machine and in every run, so that a search
// that was interrupted and resumed can be compared with one that was not.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/base/records.h"

namespace wl {

// Between 10 us and 1 ms; min_repeats samples within 2 % of each other.
std::vector<int64_t> fake_samples(const Source& source, const Recipe& recipe);

}  // namespace wl
