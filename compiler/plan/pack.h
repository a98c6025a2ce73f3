// Packing: several graphs that do not depend on each other, and may read the same inputs, as one kernel. On machines
// with lanes its grid is the sum of their grids, and every block belongs to one of them; on a CPU every block has a
// share of each. It saves launches, and uses multiprocessors that small kernels leave idle.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/plan/stitch.h"

namespace wl {

// One of the graphs, by itself a legal group. Its buffers, in call order, are the whole group's.
struct Member {
  Graph graph;
  Domain domain;
  std::vector<Stage::Buffer> buffers;
  int kind = 0;  // members of one kind have equal graphs, and one schedule
};

struct Packed {
  std::vector<Member> members;
  int kinds = 0;
  const Member& first_of(int kind) const;
};

// The machine as a member sees it: a packed kernel has neither passes nor clusters.
Machine member_machine(const Machine& machine);
}  // namespace wl
