// One of the graphs of what a block does (carried.h), while it is made.
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

  // The input that `end` says, of `like`'s type and shape.
  NodeId read(const CarriedEnd& end, const Node& like);
  void write(int value, NodeId node);
  // A node of the slab, with all that it is computed from.
  NodeId copy(NodeId id);
  // Times `scale`, and with its dimensions in the order `perm`; empty: as they are.
  NodeId copy(NodeId id, double scale, const std::vector<int64_t>& perm);
  // The value, whose dimensions are the dimensions `dims` of `like`, in the shape of that.
  NodeId spread(NodeId value, const Node& like, std::vector<int64_t> dims);
  // Makes the part's graph of what was built, if anything was.
  absl::Status finish_part();

 private:
  const Slab& slab_;
  CarriedParts::Part& part_;
  std::map<std::string, NodeId> read_;
  std::map<NodeId, NodeId> copies_;
};

// Dimensions of an operand of `sum`, a reduction over one axis or a contraction, as those of `sum`; false where it sums
// over one of them.
bool in_sum(const Node& sum, size_t operand, std::vector<int64_t>& dims);

// The contraction that only this node reads, and multiplies with a number, and that number; node -1: there is none.
// `readers`: by node, how many read it.
std::pair<NodeId, double> scaled_product(const Graph& graph, const std::vector<int>& readers, NodeId id);

// The letters of an operand or result, with the one at `along` first.
std::string moved_first(std::string letters, int along);

}  // namespace wl
