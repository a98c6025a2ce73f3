// The prices of kernels when a cover is chosen by measured times.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace wl {

// The price of a kernel that was not measured.
enum class Unmeasured : uint8_t {
  kLikely,  // the model's time, corrected by its error for the class, times `hope`: it may be chosen and measured
  kBound,   // the model's lower bound: a cover of measured kernels only is then the best over the pool
  kNever,   // infinite: it is not chosen
};

// Limits of `hope`. While the chosen cover has only measured kernels, hope is lowered, down to kLeastHope, since a
// model is seldom wrong by more.
inline constexpr double kFirstHope = 0.85, kLeastHope = 0.5;
// How many covers with unmeasured kernels are searched at once. With one cover in a round, a large pool takes many
// rounds.
inline constexpr int kCoversOfARound = 3;

struct CoverPrices {
  std::map<std::string, double> measured;  // us, by graph_hash() of a group's own graph
  Unmeasured otherwise = Unmeasured::kLikely;
  double hope = kFirstHope;
};

}  // namespace wl
