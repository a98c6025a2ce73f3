// Pseudorandom numbers that depend only on a seed: splitmix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom
// Number Generators", OOPSLA 2014).
#pragma once

#include <cstdint>

namespace wl {

inline constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

// The finaliser of splitmix64: a bijection in which every output bit depends on every input bit.
[[gnu::always_inline]] inline uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Returns the next number of the sequence and advances `state`.
inline uint64_t split_mix(uint64_t& state) {
  return mix(state += kGolden);
}

}  // namespace wl
