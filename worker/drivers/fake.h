// A simulated device whose times are a hash of the source text. They are the same on every machine and in every run, so
// that tests can compare an interrupted and resumed search with an uninterrupted one.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/base/records.h"

namespace wl {

// Returns between 1 s and 100 s: min_repeats samples within 2 % of each other.
std::vector<int64_t> fake_samples(const Source& source, const Recipe& recipe);
// Those of the kernels of a chain, added up.
std::vector<int64_t> fake_samples(const KernelChain& chain, const std::vector<Candidate>& kernels,
                                  const Recipe& recipe);

}  // namespace wl
