// Copies structs of the C library from and to callers. A caller that was compiled with an older header knows only the
// first members of a struct, as many as its `struct_size` covers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace wl {

// Returns a copy of the caller's struct. Members that the caller does not know are zero. If `given` is null, all
// members are zero.
template <typename Struct>
Struct taken(const Struct* given) {
  Struct out = {};
  if (given != nullptr) std::memcpy(&out, given, std::min(given->struct_size, sizeof out));
  return out;
}

// Copies those members of `from` that the caller knows to the caller's struct `to`, whose struct_size stays as it is.
template <typename Struct>
void give(Struct from, Struct* to) {
  from.struct_size = to->struct_size;
  std::memcpy(to, &from, std::min(to->struct_size, sizeof from));
}

}  // namespace wl
