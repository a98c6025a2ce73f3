// The graph of a job's result: what its launches compute, one after the other, joined at the values that they pass on.
// It is the graph that the job was asked for, or an equal one whose values between kernels are stored in another order.
#pragma once

#include <vector>

#include "compiler/base/job.h"
#include "compiler/ir/graph.h"

namespace wl {

struct Composition {
  // All are nodes of `graph`.
  struct Launch {
    std::vector<NodeId> computes;  // ascending; never inputs
    std::vector<NodeId> stores;    // empty: nothing that it stores is needed by an output
  };
  Graph graph;
  std::vector<Launch> launches;  // one for each step of the result, in its order
};

// Equal nodes of several launches are one node, which each of them computes. What a launch computes and nobody reads is
// left out. Where a kernel treats a value as one of another shape, a reshape stands before it, in no launch. Of a
// result only groups[].graph, steps, buffers, inputs and outputs are looked at, and nothing in them is trusted.
// InvalidArgument names the step that does not fit to the others.
absl::StatusOr<Composition> compose(const JobResult& result);

}  // namespace wl
