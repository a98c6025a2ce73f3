// Structs of the C library, of which a caller that was built with an older header knows only the first members.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace wl {

// What the caller gave; members that it does not know, and all where it gave nothing, are zero.
template <typename Struct>
Struct taken(const Struct* given) {
  Struct out = {};
  if (given != nullptr) std::memcpy(&out, given, std::min(given->struct_size, sizeof out));
  return out;
}

// Writes the members that the caller knows. Its struct_size stays.
template <typename Struct>
void give(Struct from, Struct* to) {
  from.struct_size = to->struct_size;
  std::memcpy(to, &from, std::min(to->struct_size, sizeof from));
}

}  // namespace wl
