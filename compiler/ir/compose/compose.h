// Builds the graph that the result of a job computes: the graphs of its kernel launches, one after another, connected
// through the buffers that one launch stores and another reads. The result equals the graph that the job was asked for,
// except that values between kernels may be stored with their axes in another order.
#pragma once

#include <vector>

#include "compiler/base/job.h"
#include "compiler/ir/graph.h"

namespace wl {

struct Composition {
  // One launch of a kernel, as lists of numbers of nodes of `graph`.
  struct Launch {
    std::vector<NodeId> computes;  // the nodes that the launch computes, ascending; never inputs
    std::vector<NodeId> stores;    // the nodes that the launch stores; empty: no output needs any of them
  };
  Graph graph;
  std::vector<Launch> launches;  // one launch for each step of the result, in the same order
};

// If several launches compute equal nodes, the graph has one node, which is listed for each of these launches. Nodes
// that no output needs are left out. A value may be read, or be an output, in another shape than the one in which it
// was stored. The reshape then belongs to the launch that reads the value, or for an output to the launch that stores
// it. Of `result`, only groups[].graph, steps, buffers, inputs and outputs are read, and all of them are checked.
// InvalidArgument names the group, step, buffer or output that does not fit the others.
absl::StatusOr<Composition> compose(const JobResult& result);

}  // namespace wl
