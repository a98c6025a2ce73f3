#include "compiler/domain/pack.h"

#include <algorithm>

namespace wl {

const Member& Packed::first_of(int kind) const {
  return *std::find_if(members.begin(), members.end(), [kind](const Member& member) { return member.kind == kind; });
}

Machine member_machine(const Machine& machine) {
  Machine own = machine;
  // A reduction is divided among blocks only if each block gets at least this many elements. No reduction is so long,
  // so a space offers kernels of one pass only.
  own.part_elements = int64_t{1} << 50;
  return own;
}

}  // namespace wl
