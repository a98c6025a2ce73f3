// Numbers that look random and follow from a seed alone: splitmix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom
// Number Generators", OOPSLA 2014).
#pragma once

#include <cstdint>

namespace wl {

inline constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

// Its finaliser: a bijection of which every bit depends on every bit.
[[gnu::always_inline]] inline uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// The next number of the sequence that `state` stands in.
inline uint64_t split_mix(uint64_t& state) {
  return mix(state += kGolden);
}

}  // namespace wl
