#include "compiler/domain/pack.h"

#include <algorithm>

namespace wl {

const Member& Packed::first_of(int kind) const {
  return *std::find_if(members.begin(), members.end(), [kind](const Member& member) { return member.kind == kind; });
}

Machine member_machine(const Machine& machine) {
  Machine own = machine;
  // With parts of so many elements, no reduction is divided among blocks, and a space offers kernels of one pass only.
  own.part_elements = int64_t{1} << 50;
  return own;
}

}  // namespace wl
