// The prices of kernels, by which a cover is chosen once times of some kernels were measured.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace wl {

// The price of a kernel without a measured time.
enum class Unmeasured : uint8_t {
  // The modelled time, times the model's mean error for the kernel's class, times `hope` (CoverPrices). If the errors
  // of the class scatter too little to justify `hope`, a number nearer to 1 replaces `hope`.
  kLikely,
  // A lower bound of the time. If the cheapest cover then has only measured kernels, it is the best cover of the pool.
  kBound,
  kNever,  // infinite, so that only measured kernels are chosen
};

// Limits of `hope`, a factor on the likely times of kernels that were not measured. As long as the chosen cover has
// only measured kernels, `hope` is lowered, so that other covers are tried; it is not lowered below kLeastHope, since a
// model is seldom wrong by more.
inline constexpr double kFirstHope = 0.85, kLeastHope = 0.5;
// In one round of a job, the unmeasured kernels of this many covers are searched. With one cover in each round, a large
// pool would take many rounds.
inline constexpr int kCoversOfARound = 3;

struct CoverPrices {
  std::map<std::string, double> measured;  // measured times in us of kernels, by graph_hash() of the kernel's graph
  Unmeasured otherwise = Unmeasured::kLikely;
  double hope = kFirstHope;
};

}  // namespace wl
