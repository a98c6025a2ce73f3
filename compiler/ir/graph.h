// A Graph says what to compute. It is a list of nodes in topological order, each an op of ops.def applied to earlier
// nodes. A Graph is a value and may be copied; compiler passes build new graphs. Builder (build.h) gives equal nodes
// one number, so a node's number identifies it within the graph. The canonical text (text.h) identifies a graph between
// machines: its hash is the graph's key. To add an op, add a row to ops.def. An op that is not elementwise also needs a
// case in infer.cpp (shapes) and in eval.cpp (values), and a view needs its axes in index_map.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/dtype.h"
#include "compiler/base/fill.h"
#include "compiler/base/status.h"

namespace wl {

enum class Op : uint8_t {
#define WL_OP(id, ...) id,
#define WL_VIEW(id, ...) id,
#define WL_REDUCTION(id, ...) id,
#define WL_ELEMENTWISE(id, ...) id,
#include "compiler/ir/ops.def"
};

enum class OpClass : uint8_t { kLeaf, kElementwise, kView, kReduce, kContract, kGather };
enum class ResultType : uint8_t { kSame, kBool, kAttr };
enum class ViewKind : uint8_t { kSameOrder, kAxes, kJoined };
enum class Takes : uint8_t { kAnything, kNumbers, kFloats, kIntegers, kUnsigned, kBools };
enum class Law : uint8_t { kNoLaw, kCommutes, kIdentityZero, kIdentityOne, kIdentityLowest, kIdentityHighest };
enum class Slope : uint8_t { kSmooth, kJumps };

struct OpInfo {
  Op op;
  std::string_view name;
  OpClass cls;
  int arity;  // the number of operands; -1: one or more
  std::string_view ints, ints2;
  int cost;       // the issue slots that computing one element takes
  ViewKind view;  // for views only: how the elements of the view lie in its operands (ops.def)
  Op combine;     // for reductions and contractions: the op that joins partial results
  // `takes` and the fields after it are for elementwise ops only.
  Takes takes;
  Law law;
  Slope slope;
  ResultType result;
  double ulps;
  std::string_view spelling;  // the op's text in kernels; "": a call of the prelude's function wl_<name>
  // `value` returns the op's result at (x, y, z). `partials` stores the absolute values of the partial derivatives at
  // (x, y, z) to `out`; `r` is the result there.
  double (*value)(double x, double y, double z);
  void (*partials)(double x, double y, double z, double r, double out[3]);
};
std::span<const OpInfo> ops();  // returns kOps, in the order of enum Op
const OpInfo& info(Op op);
// The largest cost per element, in issue slots, of a value that a kernel computes again for every use instead of
// storing and loading it.
inline constexpr int kCheapWork = 4;
inline OpClass class_of(Op op) {
  return info(op).cls;
}
inline std::string_view name_of(Op op) {
  return info(op).name;
}

// is_bitwise(): whether an op works on the bits of integers. is_logical(): whether it works on truth values (b1).
inline bool is_bitwise(Op op) {
  return info(op).takes == Takes::kIntegers || info(op).takes == Takes::kUnsigned;
}
inline bool is_logical(Op op) {
  return info(op).takes == Takes::kBools;
}
// Whether this elementwise op may join two partial results of a reduction.
inline bool is_combine(Op op) {
  return info(op).law >= Law::kIdentityZero;
}
// combine_of() returns the elementwise op that joins two partial results of a reduction or contraction. identity_of()
// returns the identity of that op: the value of `dtype` that leaves any other value unchanged when joined to it.
Op combine_of(Op reduce);
double identity_of(Op combine, DType dtype);

using Shape = std::vector<int64_t>;
using NodeId = int;
int64_t elements(const Shape& shape);  // returns the number of elements: 1 for a scalar, 0 if an extent is 0
std::vector<int64_t> row_major_strides(const Shape& shape);

struct Node {
  Op op = Op::constant;
  DType dtype = DType::f32;
  Shape shape = {};
  std::vector<NodeId> operands = {};
  std::vector<int64_t> ints = {}, ints2 = {};  // the attributes that the op's row of ops.def names
  double value = 0;                            // the value of a constant, or the fill value of a pad
  std::string text = {};                       // the name of an input, or the einsum of a contract
  Fill fill = {};                              // how the values of an input are generated
  bool tf32 = false;  // for a contract of f32: whether kernels may cut factors to 10 mantissa bits (docs/numerics.md)
  bool operator==(const Node&) const = default;
};

struct Output {
  std::string name;
  NodeId node;
  bool operator==(const Output&) const = default;
};

struct Graph {
  std::vector<Node> nodes;  // the nodes in topological order: operands come before their users
  std::vector<Output> outputs;
  std::vector<NodeId> inputs() const;  // returns the input nodes, in node order
  int64_t bytes(NodeId id) const { return elements(nodes[id].shape) * size_of(nodes[id].dtype); }
  bool operator==(const Graph&) const = default;
};

// The letters of the operands and the result in a contract's text "A,B->C".
struct Einsum {
  std::string a, b, out;
};
absl::StatusOr<Einsum> parse_einsum(std::string_view text);

// Sets `tf32` on every contract whose operands are f32. Kernels may then cut off mantissa bits of its factors that the
// format tf32 does not have.
void allow_tf32(Graph& graph);

inline constexpr int kMaxRank = 16;
std::string shape_text(const Shape& shape);  // formats a shape, e.g. "[4096,1024]"
// Returns a node as messages name it, with its number in the graph, op and shape, e.g. "%3 reduce_max [64]".
std::string node_text(const Graph& graph, NodeId id);
std::string type_text(DType dtype, const Shape& shape);  // formats a type, e.g. "f32[4096,1024]"
Shape without_units(const Shape& shape);                 // returns the extents other than 1, in order

// Whether op(x, y) == op(y, x) for all x and y.
inline bool is_commutative(Op op) {
  return info(op).law != Law::kNoLaw;
}

// Returns the number of `dtype` that is nearest to `value`. For integer dtypes, the value is rounded toward zero and
// saturates, and NaN becomes 0.
double round_to(DType dtype, double value);

// Checks every invariant that the rest of the compiler relies on: the order of the nodes, arity, the counts and ranges
// of attributes, shapes and dtypes as infer() gives them, unique names of inputs and of outputs, and that there is an
// output. The error's message names the node or output.
absl::Status verify(const Graph& graph);

// Fills in node.shape and node.dtype from the operands (nodes of `earlier`) and attributes. The caller sets the shape
// of a reshape, broadcast, slice, constant, iota or input, which infer() checks, and the dtype of a cast, constant,
// iota or input. infer() also makes the node canonical: it rounds a constant and a pad's value to the dtype, and resets
// fields that do not apply to the op or dtype. Returns InvalidArgument, with the op's name, for an illegal combination.
absl::Status infer(std::span<const Node> earlier, Node& node);

// Returns the graph with only the nodes that its outputs need, renumbered in the same order. Inputs stay even if they
// are not used, unless `drop_inputs` is set.
Graph prune(Graph graph, bool drop_inputs = false);

}  // namespace wl
