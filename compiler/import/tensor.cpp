// The functions of T, the handle of a tensor in the graph that is being built (call.h).
#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/str_join.h"
#include "compiler/import/call.h"

namespace wl::onnx_import {

Shape broadcast_shape(const Call& call, const std::vector<Shape>& shapes) {
  Shape result;
  for (const Shape& shape : shapes) {
    if (shape.size() > result.size()) result.insert(result.begin(), shape.size() - result.size(), 1);
    const size_t shift = result.size() - shape.size();
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t& extent = result[shift + i];
      if (extent == 1) {
        extent = shape[i];
      } else if (shape[i] != 1 && shape[i] != extent) {
        call.fail("shapes ",
                  absl::StrJoin(shapes, " and ", [](std::string* out, const Shape& s) { *out += shape_text(s); }),
                  " do not broadcast");
      }
    }
  }
  call.check_shape(result);
  return result;
}

T broadcast_to(T x, const Shape& shape) {
  const Shape from = x.shape();
  if (from == shape) return x;
  const Node node = x.call().builder().node(x.id());
  if (broadcast_shape(x.call(), {from, shape}) != shape) {
    x.call().fail("a tensor of shape ", shape_text(from), " does not broadcast to ", shape_text(shape));
  }
  if (node.op == Op::constant) return x.call().constant(node.value, node.dtype, shape);
  // Axes of extent 1 are removed first, so that broadcasts of [n] and of [1,n] become the same node.
  Shape squeezed;
  std::vector<int64_t> dims;
  const size_t shift = shape.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == 1) continue;
    squeezed.push_back(from[i]);
    dims.push_back(static_cast<int64_t>(shift + i));
  }
  x = reshape(x, squeezed);
  return x.call().checked(x.call().builder().broadcast(x.id(), shape, std::move(dims)));
}

T stretch(T reduced, const std::vector<int64_t>& axes, const Shape& shape) {
  if (axes.empty()) return reduced;
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) dims.push_back(i);
  }
  return reduced.call().checked(reduced.call().builder().broadcast(reduced.id(), shape, std::move(dims)));
}

T apply(Op op, std::initializer_list<Arg> operands) {
  // Operands that are numbers take the dtype of the last operand that is a tensor. (The first operand of select is its
  // condition, whose dtype does not fit.)
  T like;
  std::vector<Shape> shapes;
  for (const Arg& arg : operands) {
    if (!arg.tensor.valid()) continue;
    like = arg.tensor;
    shapes.push_back(arg.tensor.shape());
  }
  const bool select_numbers = op == Op::select && shapes.size() == 1;
  const Shape shape = broadcast_shape(like.call(), shapes);
  std::vector<NodeId> ids;
  for (const Arg& arg : operands) {
    const T tensor = arg.tensor.valid()
                         ? broadcast_to(arg.tensor, shape)
                         : like.call().constant(arg.number, select_numbers ? DType::f32 : like.dtype(), shape);
    ids.push_back(tensor.id());
  }
  return like.call().checked(like.call().builder().elementwise(op, std::move(ids)));
}

T cast(T x, DType dtype) {
  if (x.dtype() == dtype) return x;
  if (dtype == DType::b1) return apply(Op::ne, {x, 0.0});
  if (is_float(x.dtype()) && !is_float(dtype)) {
    x = select(apply(Op::lt, {x, 0.0}), apply(Op::ceil, {x}), apply(Op::floor, {x}));
  }
  return cast_whole(x, dtype);
}

T cast_whole(T x, DType dtype) {
  return x.call().checked(x.call().builder().cast(x.id(), dtype));
}

T reshape(T x, Shape shape) {
  x.call().check_shape(shape);
  const Node node = x.call().builder().node(x.id());
  if (elements(node.shape) != elements(shape)) {
    x.call().fail("shape ", shape_text(node.shape), " cannot become ", shape_text(shape), ": ", elements(node.shape),
                  " and ", elements(shape), " elements");
  }
  if (node.op == Op::constant) return x.call().constant(node.value, node.dtype, std::move(shape));
  if (node.op == Op::reshape) x = T(&x.call(), node.operands[0]);
  if (x.shape() == shape) return x;
  return x.call().checked(x.call().builder().reshape(x.id(), std::move(shape)));
}

T transpose(T x, std::vector<int64_t> perm) {
  if (std::is_sorted(perm.begin(), perm.end()) && static_cast<int64_t>(perm.size()) == x.rank()) return x;
  return x.call().checked(x.call().builder().transpose(x.id(), std::move(perm)));
}

T slice_axis(T x, int64_t axis, int64_t start, int64_t step, int64_t count) {
  Shape shape = x.shape();
  x.extent(axis);
  if (start == 0 && step == 1 && count == shape[static_cast<size_t>(axis)]) return x;
  std::vector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
  starts[static_cast<size_t>(axis)] = count == 0 ? 0 : start;
  steps[static_cast<size_t>(axis)] = count <= 1 ? 1 : step;
  shape[static_cast<size_t>(axis)] = count;
  return x.call().checked(x.call().builder().slice(x.id(), std::move(starts), std::move(steps), std::move(shape)));
}

T pad(T x, std::vector<int64_t> low, std::vector<int64_t> high, double value) {
  const auto zero = [](int64_t v) { return v == 0; };
  if (std::all_of(low.begin(), low.end(), zero) && std::all_of(high.begin(), high.end(), zero)) return x;
  Shape shape = x.shape();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (low[i] < 0 || high[i] < 0 || low[i] > kMaxElements || high[i] > kMaxElements) {
      x.call().fail("padding by ", low[i], " and ", high[i], " is out of range");
    }
    shape[i] += low[i] + high[i];
  }
  x.call().check_shape(shape);
  Node node{.op = Op::pad, .operands = {x.id()}, .ints = std::move(low), .ints2 = std::move(high)};
  // constant() rounds the padding value to the dtype of x.
  node.value = x.call().builder().node(x.call().constant(value, x.dtype(), {}).id()).value;
  return x.call().checked(x.call().builder().add_node(std::move(node)));
}

T concat(const std::vector<T>& parts, int64_t axis) {
  if (parts.size() == 1) return parts[0];
  Node node{.op = Op::concat, .ints = {axis}};
  int64_t sum = 0;
  for (const T& part : parts) {
    node.operands.push_back(part.id());
    if (part.rank() != parts[0].rank()) part.call().fail("concatenated tensors must have one rank");
    sum += part.extent(axis);
  }
  Shape shape = parts[0].shape();
  shape[static_cast<size_t>(axis)] = sum;
  parts[0].call().check_shape(shape);
  return parts[0].call().checked(parts[0].call().builder().add_node(std::move(node)));
}

T window(T x, std::vector<int64_t> axes, std::vector<int64_t> params) {
  Shape shape = x.shape();
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t size = params[3 * i], stride = params[3 * i + 1], dilation = params[3 * i + 2];
    x.extent(axes[i]);
    int64_t& extent = shape[static_cast<size_t>(axes[i])];
    if (size < 1 || stride < 1 || dilation < 1 || size > kMaxElements || stride > kMaxElements ||
        dilation > kMaxElements) {
      x.call().fail("window of size ", size, ", stride ", stride, " and dilation ", dilation, " is out of range");
    }
    // The comparison divides, because the product of size and dilation may overflow.
    if (size > 1 && (extent - 1) / (size - 1) < dilation) {
      x.call().fail("window of size ", size, " and dilation ", dilation, " is larger than the padded extent ", extent);
    }
    if (extent < 1) x.call().fail("a window needs at least one element, the padded extent is ", extent);
    extent = (extent - 1 - (size - 1) * dilation) / stride + 1;
    shape.push_back(size);
  }
  x.call().check_shape(shape);
  Node node{.op = Op::window, .operands = {x.id()}, .ints = std::move(axes), .ints2 = std::move(params)};
  return x.call().checked(x.call().builder().add_node(std::move(node)));
}

T unsqueeze(T x, const std::vector<int64_t>& axes) {
  Shape shape = x.shape();
  for (const int64_t axis : axes) {
    if (axis < 0 || axis > static_cast<int64_t>(shape.size())) {
      x.call().fail("a tensor of shape ", shape_text(x.shape()), " has no place for axis ", axis);
    }
    shape.insert(shape.begin() + axis, 1);
  }
  return reshape(x, std::move(shape));
}

T reduce(Op op, T x, std::vector<int64_t> axes, bool keep) {
  Shape shape = x.shape();
  if (axes.empty()) return x;
  for (const int64_t axis : axes) {
    x.extent(axis);
    shape[static_cast<size_t>(axis)] = 1;
  }
  const T result = x.call().checked(x.call().builder().reduce(op, x.id(), std::move(axes)));
  return keep ? reshape(result, std::move(shape)) : result;
}

T mean(T x, const std::vector<int64_t>& axes, bool keep) {
  int64_t count = 1;
  for (const int64_t axis : axes) count *= x.extent(axis);
  const T sum = reduce(Op::reduce_sum, x, axes, keep);
  if (!is_float(x.dtype())) return sum / static_cast<double>(count);
  // The mean of no elements must be NaN: their sum is 0, and 0 * inf is NaN.
  return sum * (count == 0 ? std::numeric_limits<double>::infinity() : 1.0 / static_cast<double>(count));
}

std::vector<int64_t> axes_from(int64_t first, int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(std::max<int64_t>(rank - first, 0)));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

T contract(T a, T b, const std::string& einsum) {
  return a.call().checked(a.call().builder().contract(a.id(), b.id(), einsum));
}

T take_along(T x, T index, int64_t axis) {
  return x.call().checked(x.call().builder().take_along(x.id(), index.id(), axis));
}

T along(T vector, int64_t axis, int64_t rank) {
  if (vector.rank() != 1) {
    vector.call().fail("a list of one number per channel was expected, found shape ", shape_text(vector.shape()));
  }
  if (axis < 0 || axis >= rank) vector.call().fail("a tensor of rank ", rank, " has no axis ", axis);
  Shape shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = vector.extent(0);
  return reshape(vector, std::move(shape));
}

}  // namespace wl::onnx_import
