// Builds one of the graphs of a block's work (`before`, `place`, `turn` and `after` of CarriedParts, carried.h).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/cover/slab/carried.h"
#include "compiler/ir/build.h"

namespace wl {

class PartBuilder : public Builder {
 public:
  PartBuilder(const Slab& slab, CarriedParts::Part& part) : slab_(slab), part_(part) {}

  // Returns the input of the part's graph that stands for `end`: an input or iota of the group, or a carried value. If
  // there is no such input yet, adds one with the dtype and shape of `like`.
  NodeId read(const CarriedEnd& end, const Node& like);
  void write(int value, NodeId node);
  // Copies a node of the slab and everything that it is computed from.
  NodeId copy(NodeId id);
  // Copies a node and everything that it is computed from, times `scale` and transposed by `perm` (empty: not
  // transposed).
  NodeId copy(NodeId id, double scale, const std::vector<int64_t>& perm);
  // Broadcasts `value` to the shape of `like`. dims[i]: the dimension of `like` that dimension i of `value` becomes.
  NodeId spread(NodeId value, const Node& like, std::vector<int64_t> dims);
  // Moves the nodes that were built, if there are any, into the part's graph.
  absl::Status finish_part();

 private:
  const Slab& slab_;
  CarriedParts::Part& part_;
  std::map<std::string, NodeId> read_;
  std::map<NodeId, NodeId> copies_;
};

// Replaces `dims`, dimensions of an operand of `sum` (a contraction, or a reduction over one axis), by the dimensions
// of its result that they become. Returns false if a contraction sums over one of them. For a reduction, `dims` must
// not contain the summed dimension.
bool in_sum(const Node& sum, size_t operand, std::vector<int64_t>& dims);

// Returns the contraction and the constant if node `id` is their product and nothing else reads the contraction;
// otherwise the returned node is -1. `readers`: the number of uses of each node.
std::pair<NodeId, double> scaled_product(const Graph& graph, const std::vector<int>& readers, NodeId id);

// Returns the einsum letters of an operand or result, with the letter at position `along` moved to the front.
std::string moved_first(std::string letters, int along);

}  // namespace wl
