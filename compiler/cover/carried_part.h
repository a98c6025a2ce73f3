// Builds one of the graphs of a block's work (CarriedParts::Part, carried.h).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/cover/carried.h"
#include "compiler/ir/build.h"

namespace wl {

class PartBuilder : public Builder {
 public:
  PartBuilder(const Slab& slab, CarriedParts::Part& part) : slab_(slab), part_(part) {}

  // The part's input for `end`, with the type and shape of `like`.
  NodeId read(const CarriedEnd& end, const Node& like);
  void write(int value, NodeId node);
  // Copies a node of the slab, with all that it is computed from.
  NodeId copy(NodeId id);
  // The same copy times `scale`, and with its dimensions in the order `perm`; empty: as they are.
  NodeId copy(NodeId id, double scale, const std::vector<int64_t>& perm);
  // Broadcasts `value` to the shape of `like`. `dims`: for each dimension of `value`, which dimension of `like` it is.
  NodeId spread(NodeId value, const Node& like, std::vector<int64_t> dims);
  // Makes the part's graph of the nodes that were built, if there are any.
  absl::Status finish_part();

 private:
  const Slab& slab_;
  CarriedParts::Part& part_;
  std::map<std::string, NodeId> read_;
  std::map<NodeId, NodeId> copies_;
};

// Changes dimensions of an operand of `sum`, a reduction over one axis or a contraction, into dimensions of its result.
// False where a contraction sums over one of them; for a reduction, the summed dimension must not be among `dims`.
bool in_sum(const Node& sum, size_t operand, std::vector<int64_t>& dims);

// If node `id` multiplies a contraction that no other node reads with a constant: the contraction and the constant;
// else node -1. `readers`: by node, how many read it.
std::pair<NodeId, double> scaled_product(const Graph& graph, const std::vector<int>& readers, NodeId id);

// The einsum letters of an operand or result, with the letter at position `along` moved to the front.
std::string moved_first(std::string letters, int along);

}  // namespace wl
