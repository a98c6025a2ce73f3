// The Graph says what to compute: a list of nodes in topological order, each an op of ops.def applied to earlier
// nodes. A value, copied freely; no node is ever changed in place, passes build new graphs. Equal nodes are interned by
// Builder, so a node's number is its identity within the graph. Canonical text (print.h, parse.h) is the identity
// between machines: its hash is the graph's key. To add an op: a row of ops.def; one that is not elementwise also needs
// its case in infer.cpp (shapes) and eval.cpp (values), a view its axes in index_map.cpp.
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
  int arity;  // number of operands; -1 = one or more
  std::string_view ints, ints2;
  int cost;       // issue slots per element
  ViewKind view;  // of views
  Op combine;     // of reductions and contractions
  Takes takes;    // this and the rest: elementwise only
  Law law;
  Slope slope;
  ResultType result;
  double ulps;
  std::string_view spelling;  // in kernels; "": a call of the prelude's wl_<name>
  // value(x, y, z), and the absolute partial derivatives at the same point, given r = value.
  double (*value)(double x, double y, double z);
  void (*partials)(double x, double y, double z, double r, double out[3]);
};
std::span<const OpInfo> ops();  // Returns kOps, in the order of the enum.
const OpInfo& info(Op op);
// Issue slots of work on an element that is repeated rather than that its value is stored and loaded again.
inline constexpr int kCheapWork = 4;
inline OpClass class_of(Op op) {
  return info(op).cls;
}
inline std::string_view name_of(Op op) {
  return info(op).name;
}

// Ops on the bits of integers, and on truth values.
inline bool is_bitwise(Op op) {
  return info(op).takes == Takes::kIntegers || info(op).takes == Takes::kUnsigned;
}
inline bool is_logical(Op op) {
  return info(op).takes == Takes::kBools;
}
// Whether partial results of a reduction may be joined by it.
inline bool is_combine(Op op) {
  return info(op).law >= Law::kIdentityZero;
}
// The op that joins partial results of a reduction or contraction, and the value that it leaves unchanged, in a dtype.
Op combine_of(Op reduce);
double identity_of(Op combine, DType dtype);

using Shape = std::vector<int64_t>;
using NodeId = int;
int64_t elements(const Shape& shape);  // Returns 1 for a scalar, 0 when an extent is 0.
std::vector<int64_t> row_major_strides(const Shape& shape);

struct Node {
  Op op = Op::constant;
  DType dtype = DType::f32;
  Shape shape = {};
  std::vector<NodeId> operands = {};
  std::vector<int64_t> ints = {}, ints2 = {};  // attributes, with the meaning that the op's row gives them
  double value = 0;                            // value of a constant, fill value of a pad
  std::string text = {};                       // name of an input, einsum of a contract
  Fill fill = {};                              // generator of an input
  bool tf32 = false;  // of a contract of f32: factors may be as exact as 10 bits of the mantissa say (docs/numerics.md)
  bool operator==(const Node&) const = default;
};

struct Output {
  std::string name;
  NodeId node;
  bool operator==(const Output&) const = default;
};

struct Graph {
  std::vector<Node> nodes;  // in topological order: operands come before their users
  std::vector<Output> outputs;
  std::vector<NodeId> inputs() const;  // returns the input nodes, in node order
  int64_t bytes(NodeId id) const { return elements(nodes[id].shape) * size_of(nodes[id].dtype); }
  bool operator==(const Graph&) const = default;
};

// The three letter lists of a contract's text "A,B->C".
struct Einsum {
  std::string a, b, out;
};
absl::StatusOr<Einsum> parse_einsum(std::string_view text);

// Lets every product of f32 have factors of tf32.
void allow_tf32(Graph& graph);

inline constexpr int kMaxRank = 16;
std::string shape_text(const Shape& shape);              // formats a shape, e.g. "[4096,1024]"
std::string type_text(DType dtype, const Shape& shape);  // formats a type, e.g. "f32[4096,1024]"
Shape without_units(const Shape& shape);                 // returns the extents that are not 1, in order

// f(x, y) == f(y, x), whatever x and y.
inline bool is_commutative(Op op) {
  return info(op).law != Law::kNoLaw;
}

// Returns `value` rounded to the nearest number of `dtype` (integers: toward zero, saturating).
double round_to(DType dtype, double value);

// Checks every invariant that the rest of the compiler relies on: order, arity, attribute counts and ranges, shapes and
// dtypes as infer() gives them, unique input and output names, at least one output. The message names the node.
absl::Status verify(const Graph& graph);

// Fills in node.shape and node.dtype from the operands and attributes. The shape of a reshape, broadcast, constant,
// iota, input and slice and the dtype of a cast must be set already and are checked. Also makes the node canonical: a
// constant is rounded to its dtype, and fields of a fill that do not apply are reset. Illegal combinations are a Status
// that names the op.
absl::Status infer(std::span<const Node> earlier, Node& node);

// Returns the nodes that outputs need, renumbered in the same order. Unused inputs stay unless `drop_inputs`.
Graph prune(Graph graph, bool drop_inputs = false);

}  // namespace wl
