// Call is one ONNX node being imported, as the rows of table.cpp see it. T is a handle on a tensor of the graph being
// built, with arithmetic that broadcasts as NumPy does, so that a decomposition reads like its formula. A row stops at
// its first mistake: every function here that cannot continue throws Rejected, which only import.cpp catches and which
// never leaves this folder. A row therefore needs no error handling, and T is always a valid node or, for an absent
// input, fails when it is used.
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
  T() = default;  // no tensor; also returned by a row that has set its outputs itself
  T(Call* call, NodeId id) : call_(call), id_(id) {}
  Call& call() const;  // the node being imported; fails if this is no tensor
  NodeId id() const { return id_; }
  bool valid() const { return call_ != nullptr; }
  Shape shape() const;  // a copy, since the node moves as the graph grows
  DType dtype() const;
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  int64_t extent(int64_t axis) const;  // returns the extent of an axis; fails if there is no such axis

 private:
  Call* call_ = nullptr;
  NodeId id_ = -1;
};

// A tensor, or a number that takes the dtype and shape of the tensor it is combined with.
struct Arg {
  Arg(T t) : tensor(t) {}       // NOLINT(google-explicit-constructor): so that rows can write x + 1
  Arg(double v) : number(v) {}  // NOLINT(google-explicit-constructor)
  T tensor;
  double number = 0;
};

// A value of the ONNX graph: a node, or a literal or weight that becomes a node when it is first read.
struct CallValue {
  std::string name = {};
  DType dtype = DType::f32;
  Shape shape = {};
  std::optional<Literal> literal = {};
  Fill fill = {};  // how stored values are generated for a weight without values
  NodeId node = -1;
  int per_byte = 1;  // ElementType
};

class Call {
 public:
  // `inputs` has null for each absent optional input. `cache`: the values remember the node that was made for them.
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

  // Inputs. in(), shape() and dtype() fail if the input is absent.
  int inputs() const { return static_cast<int>(inputs_.size()); }
  bool has(int index) const { return index < inputs() && inputs_[static_cast<size_t>(index)] != nullptr; }
  T in(int index);
  std::vector<T> all();
  const Shape& shape(int index) const { return value(index).shape; }
  DType dtype(int index) const { return value(index).dtype; }
  int64_t rank(int index) const { return static_cast<int64_t>(shape(index).size()); }
  const Literal* literal(int index) const;       // the values of an input; null if they are not known while importing
  std::vector<int64_t> ints(int index) const;    // the integers of an input; fails if they are not known
  double number(int index) const;                // the value of an input; fails unless it is one known element
  std::vector<double> numbers(int index) const;  // the values of an input; fails unless it is a known list

  // Attributes. One of the wrong type fails. One that is left out has the default of the standard, else `otherwise`.
  bool has_attr(std::string_view name) const { return find(name) != nullptr; }
  int64_t attr(std::string_view name, int64_t otherwise) const;
  double attr_number(std::string_view name, double otherwise) const;
  std::string attr_text(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> attr_ints(std::string_view name, std::vector<int64_t> otherwise = {}) const;
  std::vector<double> attr_numbers(std::string_view name) const;
  std::vector<std::string> attr_texts(std::string_view name) const;
  DType dtype_attr(std::string_view name, DType otherwise) const;  // the attribute is a number of TensorProto.DataType,
                                                                   // where 0 means absent
  std::optional<Literal> attr_literal(std::string_view name) const;
  // Integers that some version moved from an attribute to input `index`: returns the input if there is one.
  std::optional<std::vector<int64_t>> ints_or_attr(int index, std::string_view name) const;

  int64_t axis(int64_t axis, int64_t rank) const;  // counted from the front; fails if out of range
  // returns the axes sorted; fails on duplicates
  std::vector<int64_t> axes(std::vector<int64_t> axes, int64_t rank) const;

  // Outputs. A row returns its first output or sets them all.
  int outputs() const;
  bool wants(int index) const;
  void set(int index, T tensor);
  T set_literal(int index, Literal literal);
  struct Result {
    std::optional<Literal> literal;
    NodeId node = -1;
  };
  const std::vector<Result>& results() const { return results_; }

  // Building. Nodes that the Builder rejects or that are too large fail here.
  Builder& builder() { return builder_; }
  T checked(NodeId id);
  void check_shape(const Shape& shape) const;
  T constant(double value, DType dtype, Shape shape);
  T iota(DType dtype, Shape shape, int64_t axis);
  T materialise(CallValue& value);
  // Integers of four bits from bytes that have two each, the first in the low half: the last extent is doubled. They
  // are u8, or i8 where bit 3 is the sign.
  T unpacked(T bytes, DType dtype);
  // A tensor of values that the row itself computed. It becomes a weight named after output 0 and `suffix`.
  T literal_tensor(Literal literal, std::string_view suffix);

 private:
  NodeId input(const CallValue& value);
  T wide_integers(const CallValue& value);  // of a literal that doubles do not hold
  const CallValue& value(int index) const;
  const onnx::AttributeProto* find(std::string_view name) const;
  // returns the attribute's schema if that has a default, else null
  const SchemaAttribute* standard(std::string_view name) const;

  const onnx::NodeProto& node_;
  int opset_;
  const Schema* schema_;  // schema of the node; null outside the default domain
  std::vector<CallValue*> inputs_;
  Builder& builder_;
  bool cache_;
  std::vector<Result> results_;
  std::vector<std::pair<const CallValue*, NodeId>> made_;  // the inputs that have become nodes, with their nodes
};

// Elementwise ops, whose operands broadcast.
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
T cast(T x, DType dtype);        // as in ONNX: to integers towards zero, to bool "not zero"
T cast_whole(T x, DType dtype);  // the same of floats without a fraction

// Ops that change shapes and order of elements.
Shape broadcast_shape(const Call& call, const std::vector<Shape>& shapes);
T broadcast_to(T x, const Shape& shape);
T stretch(T reduced, const std::vector<int64_t>& axes, const Shape& shape);  // undoes a reduce: broadcasts back to
                                                                             // `shape`
T reshape(T x, Shape shape);
T transpose(T x, std::vector<int64_t> perm);
T slice_axis(T x, int64_t axis, int64_t start, int64_t step, int64_t count);
T pad(T x, std::vector<int64_t> low, std::vector<int64_t> high, double value);
T concat(const std::vector<T>& parts, int64_t axis);
// Each of `axes` becomes two, (positions, taps), with all taps last. Three parameters per axis: size, stride, dilation.
T window(T x, std::vector<int64_t> axes, std::vector<int64_t> params);
T unsqueeze(T x, const std::vector<int64_t>& axes);  // adds extents of 1 at these axes of the result, which are sorted

T reduce(Op op, T x, std::vector<int64_t> axes, bool keep);  // `keep`: the reduced axes stay with extent 1
T mean(T x, const std::vector<int64_t>& axes, bool keep);
std::vector<int64_t> axes_from(int64_t first, int64_t rank);  // returns first, first + 1, ..., rank - 1
T contract(T a, T b, const std::string& einsum);
T take_along(T x, T index, int64_t axis);

// Reshapes a vector over `axis` of a tensor of that rank so that it broadcasts: all other extents are 1.
T along(T vector, int64_t axis, int64_t rank);

}  // namespace wl::onnx_import
