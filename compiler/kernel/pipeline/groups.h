// What uses a buffer, as groups: reads of it into registers, and what uses these. The reads of a group may run while
// the group before it is used.
#pragma once

#include <span>
#include <vector>

#include "compiler/kernel/pipeline/pipeline.h"
#include "compiler/kernel/pipeline/rewrite.h"

namespace wl {

struct Groups {
  struct Group {
    std::vector<Instr> reads, uses;
  };
  std::vector<Group> groups;
  Instr inner;        // the loop around them, without a body, where there is one
  int64_t turns = 1;  // of that loop

  // The reads of a group, and its uses, in a turn of the inner loop.
  std::vector<Instr> reads(Rewrite& rewrite, size_t group, const Affine& turn) const;
  std::vector<Instr> uses(Rewrite& rewrite, size_t group, const Affine& turn) const;
};

// Takes instructions apart: groups one after the other, or a loop of them. Every other group gets tiles of its own,
// where neighbours have the same. Invalid, and no tile more, where they are not such groups.
absl::StatusOr<Groups> groups_of(const Kernel& kernel, Rewrite& rewrite, const std::vector<Instr>& uses,
                                 std::span<const Pipeline::Ring> rings);

}  // namespace wl
