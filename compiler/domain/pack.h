// Packing: one kernel that computes several graphs. The graphs do not depend on each other; they may read the same
// inputs. On a GPU (or its simulator) the kernel's grid is the sum of the graphs' grids, and every block belongs to one
// graph; on a CPU every block computes a share of each graph. Packing saves launches, and uses multiprocessors that
// small kernels would leave idle.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/domain/stitch.h"

namespace wl {

// One of the packed graphs, which is a legal group by itself. `buffers` says for each of the graph's buffers, in call
// order, which buffer of the whole group it is.
struct Member {
  Graph graph;
  Domain domain;
  std::vector<Stage::Buffer> buffers;
  int kind = 0;  // Number of the member's kind. Members of one kind have equal graphs and share one schedule.
};

struct Packed {
  std::vector<Member> members;
  int kinds = 0;
  const Member& first_of(int kind) const;
};

// Returns the machine for which a member is scheduled. A packed kernel can have neither several passes nor clusters of
// blocks.
Machine member_machine(const Machine& machine);
}  // namespace wl
