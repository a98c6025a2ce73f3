// The prices of kernels for choosing a cover by measured times.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace wl {

// The price of a kernel without a measured time.
enum class Unmeasured : uint8_t {
  kLikely,  // the likely time: the modelled one, corrected by the model's error for the class, times at least `hope`
  kBound,   // a lower bound of the time, so that a cover of measured kernels that is cheaper is the best of the pool
  kNever,   // infinite: only measured kernels are chosen
};

// Limits of `hope`, a factor on prices of kernels that were not measured. As long as the chosen cover has only measured
// kernels, `hope` is lowered, at most to kLeastHope, since a model is seldom wrong by more.
inline constexpr double kFirstHope = 0.85, kLeastHope = 0.5;
// How many covers with unmeasured kernels are searched at the same time. With one cover at a time, a large pool would
// take many rounds.
inline constexpr int kCoversOfARound = 3;

struct CoverPrices {
  std::map<std::string, double> measured;  // measured us of a kernel; key: graph_hash() of its group's own graph
  Unmeasured otherwise = Unmeasured::kLikely;
  double hope = kFirstHope;
};

}  // namespace wl
