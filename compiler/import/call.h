// A Call is one ONNX node that is being imported, as a row of the import table (table.cpp) sees it. A T is a handle of
// a tensor in the graph that is being built; an empty T stands for an absent tensor, and using it is an error. The
// operators of T broadcast as NumPy does, so that a decomposition reads like its formula. Every function here that
// cannot continue throws Rejected, which ends the row at its first mistake; rows therefore need no error handling. Only
// fold.cpp catches Rejected, so that it never leaves this folder.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "compiler/import/literal.h"
#include "compiler/import/schema.h"
#include "compiler/ir/build.h"

namespace onnx {
class AttributeProto;
class NodeProto;
}  // namespace onnx

namespace wl::onnx_import {

struct Rejected {
  absl::Status status;
};

class Call;

class T {
 public:
  T() = default;  // an empty T, which a row returns if it has set all outputs itself
  T(Call* call, NodeId id) : call_(call), id_(id) {}
  Call& call() const;  // returns the node being imported; fails if this T is empty
  NodeId id() const { return id_; }
  bool valid() const { return call_ != nullptr; }
  Shape shape() const;  // returns a copy, because nodes move in memory as the graph grows
  DType dtype() const;
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  int64_t extent(int64_t axis) const;  // returns the extent of an axis; fails if the tensor has no such axis

 private:
  Call* call_ = nullptr;
  NodeId id_ = -1;
};

// An operand: a tensor, or a number that takes the dtype and shape of the other operand.
struct Arg {
  Arg(T t) : tensor(t) {}       // NOLINT(google-explicit-constructor): so that rows can write x + 1
  Arg(double v) : number(v) {}  // NOLINT(google-explicit-constructor)
  T tensor;
  double number = 0;
};

// A value of the ONNX graph: a node of the graph that is being built, or a literal or weight that becomes such a node
// when it is first read.
struct CallValue {
  std::string name = {};
  DType dtype = DType::f32;
  Shape shape = {};
  std::optional<Literal> literal = {};
  Fill fill = {};  // for a weight whose values are not known: how its stored elements are generated
  NodeId node = -1;
  int per_byte = 1;  // number of elements in a stored byte, as in ElementType
};

class Call {
 public:
  // `inputs` has a null pointer for each absent optional input. If `cache` is true, every CallValue remembers the node
  // that was made for it.
  Call(const onnx::NodeProto& node, int opset, std::vector<CallValue*> inputs, Builder& builder, bool cache);

  int opset() const { return opset_; }
  std::string_view op() const;
  [[noreturn]] void reject(absl::StatusCode code, std::string_view message) const;
  template <typename... Args>
  [[noreturn]] void fail(const Args&... args) const {
    reject(absl::StatusCode::kInvalidArgument, cat(args...));
  }
  template <typename... Args>
  [[noreturn]] void missing(const Args&... args) const {
    reject(absl::StatusCode::kUnimplemented, cat(args...));
  }

  // Inputs. The functions that take the index of an input, except has(), fail if that input is absent.
  int inputs() const { return static_cast<int>(inputs_.size()); }
  bool has(int index) const { return index < inputs() && inputs_[static_cast<size_t>(index)] != nullptr; }
  T in(int index);
  std::vector<T> all();
  const Shape& shape(int index) const { return value(index).shape; }
  DType dtype(int index) const { return value(index).dtype; }
  int64_t rank(int index) const { return static_cast<int64_t>(shape(index).size()); }
  const Literal* literal(int index) const;       // returns the values of an input; null if they are not known
  std::vector<int64_t> ints(int index) const;    // returns the integers of an input; fails if they are not known
  double number(int index) const;                // returns the value of an input; fails unless it is one known element
  std::vector<double> numbers(int index) const;  // returns the values of an input; fails unless they are known

  // Attributes. An attribute of the wrong type is an error. For an attribute that the node does not have, these
  // functions return the default of the standard or, if the standard has none, `otherwise`.
  bool has_attr(std::string_view name) const { return find(name) != nullptr; }
  int64_t attr(std::string_view name, int64_t otherwise) const;
  double attr_number(std::string_view name, double otherwise) const;
  std::string attr_text(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> attr_ints(std::string_view name, std::vector<int64_t> otherwise = {}) const;
  std::vector<double> attr_numbers(std::string_view name) const;
  std::vector<std::string> attr_texts(std::string_view name) const;
  // Returns the dtype for an attribute that is a number of TensorProto.DataType; 0 counts as absent.
  DType dtype_attr(std::string_view name, DType otherwise) const;
  std::optional<Literal> attr_literal(std::string_view name) const;
  // Returns integers that newer versions of an op take from input `index` and older versions from attribute `name`:
  // those of the input if the node has it, else those of the attribute, else nullopt.
  std::optional<std::vector<int64_t>> ints_or_attr(int index, std::string_view name) const;

  int64_t axis(int64_t axis, int64_t rank) const;  // returns the axis, counted from the front; fails if out of range
  // Returns the axes, counted from the front and sorted; fails if an axis is given twice or is out of range.
  std::vector<int64_t> axes(std::vector<int64_t> axes, int64_t rank) const;

  // Outputs. A row returns output 0 and sets the others by set(), or sets all of them and returns an empty T.
  int outputs() const;
  bool wants(int index) const;  // returns whether the node names output `index`, so that other nodes may read it
  void set(int index, T tensor);
  T set_literal(int index, Literal literal);
  struct Result {
    std::optional<Literal> literal;
    NodeId node = -1;
  };
  const std::vector<Result>& results() const { return results_; }

  // Building. These functions fail for a node that the Builder rejects or that is too large.
  Builder& builder() { return builder_; }
  T checked(NodeId id);
  void check_shape(const Shape& shape) const;
  T constant(double value, DType dtype, Shape shape);
  T iota(DType dtype, Shape shape, int64_t axis);
  T materialise(CallValue& value);
  // Unpacks integers of four bits from `bytes` (u8). Each byte has two integers, the first in the low half, so the last
  // extent of the result is twice that of `bytes`. `dtype` is u8, or i8 if bit 3 of an integer is its sign.
  T unpacked(T bytes, DType dtype);
  // Makes a tensor of values that the row itself computed. If they are all equal or count like an iota, it is a
  // constant or an iota; otherwise it is a weight whose name is that of output 0 followed by `suffix`.
  T literal_tensor(Literal literal, std::string_view suffix);

 private:
  NodeId input(const CallValue& value);
  // Returns a literal of integers that are too wide for a double as the sum of two tensors (Literal::low).
  T wide_integers(const CallValue& value);
  const CallValue& value(int index) const;
  const onnx::AttributeProto* find(std::string_view name) const;
  // Returns the schema of an attribute; null if the schema has no default for it.
  const SchemaAttribute* standard(std::string_view name) const;

  const onnx::NodeProto& node_;
  int opset_;
  const Schema* schema_;  // schema of the node; null outside the default domain
  std::vector<CallValue*> inputs_;
  Builder& builder_;
  bool cache_;
  std::vector<Result> results_;
  std::vector<std::pair<const CallValue*, NodeId>> made_;  // inputs for which nodes have been made, with their nodes
};

// Elementwise ops. Their operands broadcast.
T apply(Op op, std::initializer_list<Arg> operands);
inline T operator+(T a, Arg b) {
  return apply(Op::add, {a, b});
}
inline T operator-(T a, Arg b) {
  return apply(Op::sub, {a, b});
}
inline T operator*(T a, Arg b) {
  return apply(Op::mul, {a, b});
}
inline T operator/(T a, Arg b) {
  return apply(Op::div, {a, b});
}
inline T operator+(double a, T b) {
  return apply(Op::add, {a, b});
}
inline T operator-(double a, T b) {
  return apply(Op::sub, {a, b});
}
inline T operator*(double a, T b) {
  return apply(Op::mul, {a, b});
}
inline T operator/(double a, T b) {
  return apply(Op::div, {a, b});
}
inline T operator-(T a) {
  return apply(Op::neg, {a});
}
inline T select(T condition, Arg yes, Arg no) {
  return apply(Op::select, {condition, yes, no});
}
T cast(T x, DType dtype);        // casts as ONNX does: floats to integers by truncation, numbers to bool as x != 0
T cast_whole(T x, DType dtype);  // casts whole numbers, which need no truncation

// Ops that change the shape of a tensor or the order of its elements.
Shape broadcast_shape(const Call& call, const std::vector<Shape>& shapes);
T broadcast_to(T x, const Shape& shape);
// Broadcasts the result of a reduction over `axes` back to `shape`, the shape before the reduction.
T stretch(T reduced, const std::vector<int64_t>& axes, const Shape& shape);
T reshape(T x, Shape shape);
T transpose(T x, std::vector<int64_t> perm);
T slice_axis(T x, int64_t axis, int64_t start, int64_t step, int64_t count);
T pad(T x, std::vector<int64_t> low, std::vector<int64_t> high, double value);
T concat(const std::vector<T>& parts, int64_t axis);
// Replaces each of `axes` by an axis of window positions, and appends an axis of taps (the elements of a window) for
// each of them. `params` has three numbers for each of `axes`: the window's size, stride and dilation.
T window(T x, std::vector<int64_t> axes, std::vector<int64_t> params);
T unsqueeze(T x, const std::vector<int64_t>& axes);  // inserts axes of extent 1; `axes` are sorted axes of the result

T reduce(Op op, T x, std::vector<int64_t> axes, bool keep);  // with `keep`, the reduced axes stay, with extent 1
T mean(T x, const std::vector<int64_t>& axes, bool keep);
std::vector<int64_t> axes_from(int64_t first, int64_t rank);  // returns the axes first, first + 1, ..., rank - 1
T contract(T a, T b, const std::string& einsum);
T take_along(T x, T index, int64_t axis);

// Reshapes a vector so that it broadcasts with a tensor of rank `rank`: its elements lie along `axis`, and the other
// extents are 1.
T along(T vector, int64_t axis, int64_t rank);

}  // namespace wl::onnx_import
