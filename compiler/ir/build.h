// Builder makes the nodes of a valid graph. It interns nodes: a node equal to an earlier one gets the earlier one's
// number. Its functions infer shapes and dtypes. The first mistake is kept and returned by finish(), so code that
// builds a graph needs no error handling. elementwise() expands scalar constants to the shape of the other operands,
// which must all have the same shape (call broadcast() first).
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
  // `axes` has a number for each axis of x. Transposes x so that these numbers ascend, and sorts `axes` in the same
  // way.
  NodeId in_order(NodeId x, std::vector<int64_t>& axes);
  NodeId broadcast(NodeId x, Shape shape, std::vector<int64_t> dims);
  // Broadcasts as NumPy does: the axes of x align with the trailing ones of `shape`, and extents of 1 stretch.
  NodeId broadcast_to(NodeId x, const Shape& shape);
  NodeId slice(NodeId x, std::vector<int64_t> starts, std::vector<int64_t> steps, Shape shape);
  NodeId reduce(Op op, NodeId x, std::vector<int64_t> axes);
  // Reduces x over `axes`, then broadcasts the result along these axes to the shape of x.
  NodeId reduce_keep(Op op, NodeId x, std::vector<int64_t> axes);
  // `dtype` is the dtype of the result. By default it is that of a, or i32 if a and b have eight-bit integers (i8 or
  // u8), for which no other dtype is allowed. If a and b are floats narrower than f32, `dtype` may be f32.
  NodeId contract(NodeId a, NodeId b, std::string einsum, std::optional<DType> dtype = {}, bool tf32 = false);
  NodeId take_along(NodeId x, NodeId index, int64_t axis);
  NodeId add(NodeId a, NodeId b) { return elementwise(Op::add, {a, b}); }
  NodeId sub(NodeId a, NodeId b) { return elementwise(Op::sub, {a, b}); }
  NodeId mul(NodeId a, NodeId b) { return elementwise(Op::mul, {a, b}); }
  NodeId div(NodeId a, NodeId b) { return elementwise(Op::div, {a, b}); }
  // Fills in the node's shape and dtype by infer(). Returns the number of an equal earlier node, or adds the node and
  // returns its number; inputs are always added. All other functions call this one. An illegal node is an error (see
  // finish()), and the number returned is then that of its first operand or of a placeholder.
  NodeId add_node(Node node);
  void output(std::string name, NodeId node);

  const Node& node(NodeId id) const { return graph_.nodes[id]; }
  NodeId size() const { return static_cast<NodeId>(graph_.nodes.size()); }
  const absl::Status& status() const { return status_; }
  // Returns the verified graph without the nodes that no output needs (inputs stay), or the first error.
  absl::StatusOr<Graph> finish();

 private:
  NodeId fail(absl::Status status);
  Graph graph_;
  std::unordered_map<std::string, NodeId> interned_;
  absl::Status status_;
};

}  // namespace wl
