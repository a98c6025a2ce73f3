// What kernels cost when a cover is chosen by measured times.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace wl {

// What a kernel that nobody measured is taken to cost.
enum class Unmeasured : uint8_t {
  kLikely,  // the model's time, times how wrong that was about its class, times `hope`: so that it gets its chance
  kBound,   // what no kernel beats: a cover that then has only measured kernels is the best over the pool
  kNever,   // it is not to be chosen
};

// Where what is likely calls for nothing new, a little more is hoped for, down to kLeastHope: models are seldom so
// wrong.
inline constexpr double kFirstHope = 0.85, kLeastHope = 0.5;
// So many covers that call for something new are searched at once: the more alternatives a pool has, the less one cover
// a round finds of them.
inline constexpr int kCoversOfARound = 3;

struct CoverPrices {
  std::map<std::string, double> measured;  // us, by graph_hash() of a group's own graph
  Unmeasured otherwise = Unmeasured::kLikely;
  double hope = kFirstHope;
};

}  // namespace wl
