// A simulated device whose times are a hash of the source text. They are the same on every machine and in every run, so
// that tests can compare an interrupted and resumed search with an uninterrupted one.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/base/records.h"

namespace wl {

// Returns min_repeats samples, in ns, within 2 % of each other and between 1 s and 100 s.
std::vector<int64_t> fake_samples(const Source& source, const Recipe& recipe);
// Returns the samples of a chain: the sums of the samples of its kernels.
std::vector<int64_t> fake_samples(const KernelChain& chain, const std::vector<Candidate>& kernels,
                                  const Recipe& recipe);

}  // namespace wl
