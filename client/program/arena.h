// Where the intermediates of a program live: one block of memory, offsets reused as soon as a value is dead. Greedy by
// size (Pisarchyk & Lee, "Efficient memory management for deep neural net inference", 2020): largest first, each at the
// lowest offset that is free over its whole lifetime.
#pragma once

#include <cstdint>
#include <vector>

namespace wl {

inline constexpr int64_t kArenaAlignment = 64;

// Address modulo 4096 of the nth large buffer of a program: arguments of one kernel should differ in it, or loads wait
// for unrelated stores.
inline constexpr int64_t stagger_of(int64_t n) {
  return n % 64 * 13 % 64 * 64;
}

struct Lifetime {
  int64_t bytes = 0;
  int first = 0, last = 0;  // steps, inclusive
};

struct Arena {
  std::vector<int64_t> offsets;  // bytes, multiples of kArenaAlignment, in the order of the lifetimes
  int64_t bytes = 0;
};

// Values whose lifetimes share a step never overlap; those of a page or more are staggered. Deterministic. The arena's
// own address must be a multiple of 4096.
Arena plan_arena(const std::vector<Lifetime>& values);

}  // namespace wl
