// Builds the graph that the result of a job computes: the graphs of its kernel launches, one after the other, joined at
// the buffers that they pass on. It is the graph that the job was asked for, or an equal one whose values between
// kernels are stored in another order.
#pragma once

#include <vector>

#include "compiler/base/job.h"
#include "compiler/ir/graph.h"

namespace wl {

struct Composition {
  // One launch of a kernel. The numbers are those of nodes of `graph`.
  struct Launch {
    std::vector<NodeId> computes;  // the nodes that it computes, ascending; never inputs
    std::vector<NodeId> stores;    // those that it stores; empty: no output needs one of them
  };
  Graph graph;
  std::vector<Launch> launches;  // one for each step of the result, in its order
};

// Equal nodes of several launches are one node, which each of them computes. Nodes that no output needs are left out.
// Where a kernel reads a value in another shape than the one in which it was stored, a reshape is part of the launch
// that reads it; where an output has another shape, of the launch that stores it. Only groups[].graph, steps, buffers,
// inputs and outputs of the result are read, and all of them are checked. Returns InvalidArgument, with the group,
// step, buffer or output that does not fit the others.
absl::StatusOr<Composition> compose(const JobResult& result);

}  // namespace wl
