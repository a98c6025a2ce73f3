// Builder makes valid nodes and interns equal ones. Its helpers infer shapes. A mistake is kept as the first error and
// returned by finish(), so that the building code needs no error handling. Scalars broadcast: binary() with a constant
// expands it. All other operands must have equal shapes (use broadcast).
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

class Builder {
 public:
  Builder() = default;

  NodeId input(std::string name, DType dtype, Shape shape, Fill fill = {});
  NodeId constant(double value, DType dtype, Shape shape);
  NodeId constant_like(double value, NodeId like) { return constant(value, node(like).dtype, node(like).shape); }
  NodeId iota(DType dtype, Shape shape, int axis);
  NodeId elementwise(Op op, std::vector<NodeId> operands);
  NodeId cast(NodeId x, DType dtype);
  NodeId reshape(NodeId x, Shape shape);
  NodeId transpose(NodeId x, std::vector<int64_t> perm);
  // Transposes x, whose axes stand for `axes`, so that these ascend, and sorts `axes`.
  NodeId in_order(NodeId x, std::vector<int64_t>& axes);
  NodeId broadcast(NodeId x, Shape shape, std::vector<int64_t> dims);
  // Broadcasts as NumPy does: the axes of x align with the trailing ones of `shape`, and extents of 1 stretch.
  NodeId broadcast_to(NodeId x, const Shape& shape);
  NodeId slice(NodeId x, std::vector<int64_t> starts, std::vector<int64_t> steps, Shape shape);
  NodeId reduce(Op op, NodeId x, std::vector<int64_t> axes);
  // Reduces, then puts the reduced axes back with extent 1 and broadcasts to the shape of x.
  NodeId reduce_keep(Op op, NodeId x, std::vector<int64_t> axes);
  // `dtype`: that of a, or f32 where a and b are narrow floats; for bytes always i32.
  NodeId contract(NodeId a, NodeId b, std::string einsum, std::optional<DType> dtype = {}, bool tf32 = false);
  NodeId take_along(NodeId x, NodeId index, int64_t axis);
  NodeId add(NodeId a, NodeId b) { return elementwise(Op::add, {a, b}); }
  NodeId sub(NodeId a, NodeId b) { return elementwise(Op::sub, {a, b}); }
  NodeId mul(NodeId a, NodeId b) { return elementwise(Op::mul, {a, b}); }
  NodeId div(NodeId a, NodeId b) { return elementwise(Op::div, {a, b}); }
  // Adds any node after infer() and interning. All nodes are added by this function.
  NodeId add_node(Node node);
  void output(std::string name, NodeId node);

  const Node& node(NodeId id) const { return graph_.nodes[id]; }
  NodeId size() const { return static_cast<NodeId>(graph_.nodes.size()); }
  const absl::Status& status() const { return status_; }
  // Returns the verified graph without unused nodes (inputs stay), or the first error.
  absl::StatusOr<Graph> finish();

 private:
  NodeId fail(absl::Status status);
  Graph graph_;
  std::unordered_map<std::string, NodeId> interned_;
  absl::Status status_;
};

}  // namespace wl
