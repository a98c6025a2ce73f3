// Plans the memory of a program's intermediate values: one block of memory, of which the bytes of a value are reused
// after the value's last use. Values are placed in descending order of size, each at the lowest offset that is free
// over its whole lifetime (Pisarchyk & Lee, "Efficient memory management for deep neural net inference", 2020).
#pragma once

#include <cstdint>
#include <vector>

namespace wl {

inline constexpr int64_t kArenaAlignment = 64;

// Returns the address modulo 4096 that the nth large buffer of a program should have. Arguments of one kernel should
// have different addresses modulo 4096: if these are equal, loads wait for unrelated stores (4K aliasing).
inline constexpr int64_t stagger_of(int64_t n) {
  return n % 64 * 13 % 64 * 64;
}

struct Lifetime {
  int64_t bytes = 0;
  int first = 0, last = 0;  // indices of the first and the last step of the program that use the value
};

struct Arena {
  // The offset in bytes of each value, a multiple of kArenaAlignment, in the order of plan_arena()'s `values`.
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
};

// Places values so that those whose lifetimes share a step never overlap in memory. Values of a page or more are
// staggered (stagger_of). The result depends on the arguments alone. The arena must begin at a multiple of 4096.
Arena plan_arena(const std::vector<Lifetime>& values);

}  // namespace wl
