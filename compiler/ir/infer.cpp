// Shape and dtype inference: what each op demands of its operands and attributes, and the shape and dtype of its
// result.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compiler/ir/graph.h"

namespace wl {
namespace {

using Nodes = std::span<const Node>;

absl::Status check_shape(const Shape& shape) {
  if (shape.size() > kMaxRank) return invalid("rank ", shape.size(), " is above the limit of ", kMaxRank);
  int64_t total = 1;
  for (int64_t extent : shape) {
    if (extent < 0) return invalid("shape ", shape_text(shape), " has a negative extent");
    if (__builtin_mul_overflow(total, std::max<int64_t>(extent, 1), &total) || total > (int64_t{1} << 56)) {
      return invalid("shape ", shape_text(shape), " has too many elements; the limit is 2^56");
    }
  }
  return absl::OkStatus();
}

absl::Status check_axis(int64_t axis, size_t rank, std::string_view what) {
  if (axis >= 0 && axis < static_cast<int64_t>(rank)) return absl::OkStatus();
  return invalid(what, " ", axis, " is outside [0,", rank, ")");
}

absl::Status check_increasing(const std::vector<int64_t>& axes, size_t rank, std::string_view what) {
  for (size_t i = 0; i < axes.size(); ++i) {
    WL_RETURN_IF_ERROR(check_axis(axes[i], rank, what));
    if (i > 0 && axes[i] <= axes[i - 1]) return invalid(what, " ", shape_text(axes), " must be strictly increasing");
  }
  return absl::OkStatus();
}

absl::Status check_count(const std::vector<int64_t>& list, size_t count, std::string_view what) {
  if (list.size() == count) return absl::OkStatus();
  return invalid("expected ", count, " numbers in ", what, ", found ", list.size());
}

absl::Status infer_elementwise(Nodes nodes, Node& node) {
  const OpInfo& row = info(node.op);
  const Node& first = nodes[node.operands[0]];
  for (size_t i = 1; i < node.operands.size(); ++i) {
    const Node& other = nodes[node.operands[i]];
    if (other.shape != first.shape) {
      return invalid("operand ", i, " has shape ", shape_text(other.shape), " and operand 0 ", shape_text(first.shape),
                     "; shapes must be equal (use broadcast)");
    }
    bool condition = node.op == Op::select && i == 1;
    if (!condition && other.dtype != nodes[node.operands[i - 1]].dtype) {
      return invalid("operand ", i, " is ", name_of(other.dtype), " and operand ", i - 1, " is ",
                     name_of(nodes[node.operands[i - 1]].dtype), "; dtypes must be equal (use cast)");
    }
  }
  node.shape = first.shape;
  if (row.result == ResultType::kAttr) return absl::OkStatus();
  if (node.op == Op::select) {
    if (first.dtype != DType::b1)
      return invalid("operand 0 must be ", name_of(DType::b1), ", found ", name_of(first.dtype));
    node.dtype = nodes[node.operands[1]].dtype;
    return absl::OkStatus();
  }
  bool bools = is_logical(node.op);
  if (bools && first.dtype != DType::b1)
    return invalid("operands must be ", name_of(DType::b1), ", found ", name_of(first.dtype));
  if (!bools && row.result == ResultType::kSame && first.dtype == DType::b1) {
    return invalid("arithmetic on ", name_of(DType::b1), "; cast the operands to a number type");
  }
  if (row.takes == Takes::kFloats && !is_float(first.dtype)) {
    return invalid("operand must be a float type, found ", name_of(first.dtype), "; cast it");
  }
  if (is_bitwise(node.op) && is_float(first.dtype)) {
    return invalid("operands must be integers, found ", name_of(first.dtype), "; cast them");
  }
  if (row.takes == Takes::kUnsigned && round_to(first.dtype, -1) != 0) {
    return invalid("operands must be unsigned integers, found ", name_of(first.dtype), "; cast them");
  }
  node.dtype = row.result == ResultType::kBool ? DType::b1 : first.dtype;
  return absl::OkStatus();
}

absl::Status infer_leaf(Node& node) {
  WL_RETURN_IF_ERROR(check_shape(node.shape));
  if (node.op == Op::iota) {
    if (node.dtype == DType::b1) return invalid("dtype must be a number type");
    return check_axis(node.ints[0], node.shape.size(), "axis");
  }
  if (node.op == Op::constant) {
    node.value = round_to(node.dtype, node.value);
    return absl::OkStatus();
  }
  if (node.text.empty()) return invalid("an input needs a name");
  Fill& fill = node.fill;
  const Fill defaults;
  if (!fill.literal.empty()) {
    if (static_cast<int64_t>(fill.literal.size()) != elements(node.shape)) {
      return invalid("literal fill has ", fill.literal.size(), " values, shape ", shape_text(node.shape), " needs ",
                     elements(node.shape));
    }
    std::vector<double> literal = std::move(fill.literal);
    fill = defaults;
    fill.literal = std::move(literal);
    return absl::OkStatus();
  }
  if (is_float(node.dtype) || node.dtype == DType::b1) {
    fill.low = defaults.low;
    fill.high = defaults.high;
  }
  if (!is_float(node.dtype)) {
    fill.mean = defaults.mean;
    fill.stddev = defaults.stddev;
    if (fill.low >= fill.high)
      return invalid("fill uniform(", fill.low, ",", fill.high, ") is empty; low must be below high");
  }
  if (!std::isfinite(fill.mean) || !std::isfinite(fill.stddev) || fill.stddev < 0) {
    return invalid("fill normal(", fill.mean, ",", fill.stddev, ") must be finite with a standard deviation >= 0");
  }
  return absl::OkStatus();
}

absl::Status infer_broadcast(const Node& x, const Node& node) {
  WL_RETURN_IF_ERROR(check_shape(node.shape));
  WL_RETURN_IF_ERROR(check_count(node.ints, x.shape.size(), "dims"));
  WL_RETURN_IF_ERROR(check_increasing(node.ints, node.shape.size(), "dims"));
  for (size_t i = 0; i < node.ints.size(); ++i) {
    if (node.shape[node.ints[i]] != x.shape[i]) {
      return invalid("operand axis ", i, " has extent ", x.shape[i], ", output axis ", node.ints[i], " has ",
                     node.shape[node.ints[i]], "; extents must be equal (reshape away extents of 1)");
    }
  }
  return absl::OkStatus();
}

absl::Status infer_transpose(const Node& x, Node& node) {
  WL_RETURN_IF_ERROR(check_count(node.ints, x.shape.size(), "perm"));
  std::vector<char> seen(x.shape.size(), 0);
  node.shape.clear();
  for (int64_t axis : node.ints) {
    WL_RETURN_IF_ERROR(check_axis(axis, x.shape.size(), "perm"));
    if (seen[axis]++) return invalid("perm ", shape_text(node.ints), " is not a permutation");
    node.shape.push_back(x.shape[axis]);
  }
  return absl::OkStatus();
}

absl::Status infer_slice(const Node& x, const Node& node) {
  WL_RETURN_IF_ERROR(check_shape(node.shape));
  WL_RETURN_IF_ERROR(check_count(node.shape, x.shape.size(), "shape"));
  WL_RETURN_IF_ERROR(check_count(node.ints, x.shape.size(), "starts"));
  WL_RETURN_IF_ERROR(check_count(node.ints2, x.shape.size(), "steps"));
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (node.ints2[i] == 0) return invalid("step of axis ", i, " is 0");
    if (node.shape[i] == 0) {
      if (node.ints[i] < 0 || node.ints[i] > x.shape[i])
        return invalid("start ", node.ints[i], " of axis ", i, " is outside [0,", x.shape[i], "]");
      continue;
    }
    int64_t span = 0, last = 0;
    if (__builtin_mul_overflow(node.shape[i] - 1, node.ints2[i], &span) ||
        __builtin_add_overflow(node.ints[i], span, &last) || node.ints[i] < 0 || node.ints[i] >= x.shape[i] ||
        last < 0 || last >= x.shape[i]) {
      return invalid("axis ", i, ": start ", node.ints[i], ", step ", node.ints2[i], ", extent ", node.shape[i],
                     " leaves the operand's extent ", x.shape[i]);
    }
  }
  return absl::OkStatus();
}

absl::Status infer_pad(const Node& x, Node& node) {
  WL_RETURN_IF_ERROR(check_count(node.ints, x.shape.size(), "low"));
  WL_RETURN_IF_ERROR(check_count(node.ints2, x.shape.size(), "high"));
  node.shape = x.shape;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (node.ints[i] < 0 || node.ints2[i] < 0) return invalid("axis ", i, ": padding must not be negative (use slice)");
    if (__builtin_add_overflow(node.shape[i], node.ints[i], &node.shape[i]) ||
        __builtin_add_overflow(node.shape[i], node.ints2[i], &node.shape[i])) {
      return invalid("axis ", i, ": padding overflows");
    }
  }
  node.value = round_to(node.dtype, node.value);
  return check_shape(node.shape);
}

absl::Status infer_concat(Nodes nodes, Node& node) {
  const Node& first = nodes[node.operands[0]];
  WL_RETURN_IF_ERROR(check_axis(node.ints[0], first.shape.size(), "axis"));
  node.shape = first.shape;
  int64_t& total = node.shape[node.ints[0]];
  for (size_t i = 1; i < node.operands.size(); ++i) {
    const Node& other = nodes[node.operands[i]];
    if (other.dtype != first.dtype)
      return invalid("operand ", i, " is ", name_of(other.dtype), ", operand 0 is ", name_of(first.dtype));
    Shape expected = other.shape;
    if (expected.size() == first.shape.size()) expected[node.ints[0]] = first.shape[node.ints[0]];
    if (expected != first.shape) {
      return invalid("operand ", i, " has shape ", shape_text(other.shape), ", operand 0 ", shape_text(first.shape),
                     "; they may differ along axis ", node.ints[0], " only");
    }
    if (__builtin_add_overflow(total, other.shape[node.ints[0]], &total)) return invalid("extent overflows");
  }
  return check_shape(node.shape);
}

absl::Status infer_window(const Node& x, Node& node) {
  if (node.ints.empty()) return invalid("axes is empty");
  WL_RETURN_IF_ERROR(check_increasing(node.ints, x.shape.size(), "axes"));
  WL_RETURN_IF_ERROR(check_count(node.ints2, 3 * node.ints.size(), "params (size, stride, dilation of each axis)"));
  node.shape = x.shape;
  for (size_t i = 0; i < node.ints.size(); ++i) {
    int64_t size = node.ints2[3 * i], stride = node.ints2[3 * i + 1], dilation = node.ints2[3 * i + 2];
    int64_t extent = x.shape[node.ints[i]];
    if (size < 1 || stride < 1 || dilation < 1)
      return invalid("size, stride and dilation of axis ", node.ints[i], " must be at least 1");
    int64_t reach = 0;
    if (__builtin_mul_overflow(size - 1, dilation, &reach) || reach >= extent) {
      return invalid("axis ", node.ints[i], ": a window of ", size, " taps with dilation ", dilation,
                     " is wider than the extent ", extent);
    }
    node.shape[node.ints[i]] = (extent - reach - 1) / stride + 1;
    node.shape.push_back(size);
  }
  return check_shape(node.shape);
}

absl::Status infer_view(Nodes nodes, Node& node) {
  const Node& x = nodes[node.operands[0]];
  node.dtype = x.dtype;
  switch (node.op) {
    case Op::reshape:
      WL_RETURN_IF_ERROR(check_shape(node.shape));
      if (elements(node.shape) == elements(x.shape)) return absl::OkStatus();
      return invalid("shape ", shape_text(node.shape), " has ", elements(node.shape), " elements, the operand's ",
                     shape_text(x.shape), " has ", elements(x.shape));
    case Op::transpose:
      return infer_transpose(x, node);
    case Op::broadcast:
      return infer_broadcast(x, node);
    case Op::slice:
      return infer_slice(x, node);
    case Op::pad:
      return infer_pad(x, node);
    case Op::concat:
      return infer_concat(nodes, node);
    default:
      return infer_window(x, node);
  }
}

absl::Status infer_reduce(const Node& x, Node& node) {
  if (node.ints.empty()) return invalid("axes is empty; a reduction needs at least one");
  WL_RETURN_IF_ERROR(check_increasing(node.ints, x.shape.size(), "axes"));
  if (x.dtype == DType::b1 && node.op != Op::reduce_max && node.op != Op::reduce_min) {
    return invalid("arithmetic on ", name_of(DType::b1), "; cast the operand to a number type");
  }
  node.dtype = x.dtype;
  node.shape.clear();
  size_t next = 0;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (next < node.ints.size() && node.ints[next] == static_cast<int64_t>(i)) {
      ++next;
    } else {
      node.shape.push_back(x.shape[i]);
    }
  }
  return absl::OkStatus();
}

absl::Status infer_contract(const Node& a, const Node& b, Node& node) {
  WL_ASSIGN_OR_RETURN(Einsum e, parse_einsum(node.text));
  if (a.dtype != b.dtype && !(is_byte(a.dtype) && is_byte(b.dtype)))
    return invalid("operand 1 is ", name_of(b.dtype), ", operand 0 is ", name_of(a.dtype),
                   "; dtypes must be equal (use cast), or be i8 and u8");
  if (a.dtype == DType::b1)
    return invalid("arithmetic on ", name_of(DType::b1), "; cast the operands to a number type");
  if (node.tf32 && a.dtype != DType::f32) return invalid("tf32 is of factors of f32, not of ", name_of(a.dtype));
  std::array<int64_t, 128> extent;
  extent.fill(-1);
  for (int which = 0; which < 2; ++which) {
    const std::string& letters = which == 0 ? e.a : e.b;
    const Shape& shape = which == 0 ? a.shape : b.shape;
    if (letters.size() != shape.size()) {
      return invalid("einsum \"", node.text, "\" gives operand ", which, " rank ", letters.size(), ", its shape is ",
                     shape_text(shape));
    }
    for (size_t i = 0; i < letters.size(); ++i) {
      int64_t& known = extent[static_cast<size_t>(letters[i])];
      if (known >= 0 && known != shape[i]) {
        return invalid("einsum \"", node.text, "\": letter ", letters.substr(i, 1), " is ", known, " in operand 0 and ",
                       shape[i], " in operand 1");
      }
      known = shape[i];
    }
  }
  node.shape.clear();
  for (char c : e.out) node.shape.push_back(extent[static_cast<size_t>(c)]);
  // A contract of floats narrower than f32 may have the dtype f32: its products are then added up in f32, and the sums
  // are not rounded to the narrow dtype.
  const bool wide = is_float(a.dtype) && size_of(a.dtype) < 4 && node.dtype == DType::f32;
  if (!wide) node.dtype = is_byte(a.dtype) ? DType::i32 : a.dtype;
  return check_shape(node.shape);
}

absl::Status infer_take_along(const Node& x, const Node& index, Node& node) {
  WL_RETURN_IF_ERROR(check_axis(node.ints[0], x.shape.size(), "axis"));
  if (is_float(index.dtype) || index.dtype == DType::b1)
    return invalid("operand 1 (the index) must be an integer type, found ", name_of(index.dtype));
  Shape expected = index.shape;
  if (expected.size() == x.shape.size()) expected[node.ints[0]] = x.shape[node.ints[0]];
  if (expected != x.shape) {
    return invalid("index has shape ", shape_text(index.shape), ", operand 0 ", shape_text(x.shape),
                   "; they may differ along axis ", node.ints[0], " only");
  }
  if (x.shape[node.ints[0]] == 0 && elements(index.shape) != 0)
    return invalid("operand 0 is empty along axis ", node.ints[0], ", nothing can be taken");
  node.shape = index.shape;
  node.dtype = x.dtype;
  return absl::OkStatus();
}

absl::Status infer_row(Nodes nodes, Node& node) {
  const OpInfo& row = info(node.op);
  if (row.arity >= 0 ? static_cast<int>(node.operands.size()) != row.arity : node.operands.empty()) {
    return invalid("expected ", row.arity >= 0 ? cat(row.arity) : "at least 1", " operands, found ",
                   node.operands.size());
  }
  for (NodeId operand : node.operands) {
    if (operand < 0 || operand >= static_cast<NodeId>(nodes.size())) {
      return invalid("uses %", operand, ", which is not an earlier node (a graph must not contain a cycle)");
    }
  }
  if (row.ints.empty() && !node.ints.empty())
    return invalid("the op takes no integer list, found ", shape_text(node.ints));
  if (row.ints2.empty() && !node.ints2.empty())
    return invalid("the op takes no second integer list, found ", shape_text(node.ints2));
  if (row.ints == "axis") WL_RETURN_IF_ERROR(check_count(node.ints, 1, "axis"));
  if (node.op != Op::constant && node.op != Op::pad) node.value = 0;
  if (node.op != Op::input) node.fill = Fill{};
  switch (row.cls) {
    case OpClass::kLeaf:
      return infer_leaf(node);
    case OpClass::kElementwise:
      return infer_elementwise(nodes, node);
    case OpClass::kView:
      return infer_view(nodes, node);
    case OpClass::kReduce:
      return infer_reduce(nodes[node.operands[0]], node);
    case OpClass::kContract:
      return infer_contract(nodes[node.operands[0]], nodes[node.operands[1]], node);
    case OpClass::kGather:
      return infer_take_along(nodes[node.operands[0]], nodes[node.operands[1]], node);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status infer(std::span<const Node> earlier, Node& node) {
  absl::Status status = infer_row(earlier, node);
  return status.ok() ? status : invalid(name_of(node.op), ": ", status.message());
}

}  // namespace wl
