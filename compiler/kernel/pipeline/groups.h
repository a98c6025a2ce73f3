// Splits the code that uses a buffer into groups: reads of the buffer into registers, then the instructions that use
// these registers. The reads of one group may run while the registers of the group before it are used.
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
  Instr inner;        // the loop around the groups without its body, if there is such a loop
  int64_t turns = 1;  // number of iterations of `inner`; a turn is one iteration

  // Returns the reads or the uses of one group in iteration `turn` of the loop `inner`.
  std::vector<Instr> reads(Rewrite& rewrite, size_t group, const Affine& turn) const;
  std::vector<Instr> uses(Rewrite& rewrite, size_t group, const Affine& turn) const;
};

// Splits instructions into groups that follow one another, possibly inside a single loop. Where neighbouring groups use
// the same tiles, every second group gets new tiles. Returns an Invalid error, without having added tiles, if the
// instructions do not form such groups.
absl::StatusOr<Groups> groups_of(const Kernel& kernel, Rewrite& rewrite, const std::vector<Instr>& uses,
                                 std::span<const Pipeline::Ring> rings);

}  // namespace wl
