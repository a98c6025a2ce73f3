// Recognises a window that is written as slices: a concat of slices of one value, where the start of each slice is the
// next point of a grid.
#include <algorithm>
#include <functional>
#include <numeric>

#include "compiler/ir/rules/internal.h"

namespace wl::rule {
namespace {

// Returns the slice that an operand of the concat is, or to which the operand adds axes of extent 1 by a reshape; null
// if there is no such slice.
const Node* slice_behind(const Builder& to, NodeId id) {
  const Node* node = &to.node(id);
  if (node->op == Op::reshape) {
    const Node& inner = to.node(node->operands[0]);
    if (without_units(inner.shape) != without_units(node->shape)) return nullptr;
    node = &inner;
  }
  return node->op == Op::slice ? node : nullptr;
}

struct Taps {
  // For each axis of the windows: its number, the number of taps along it, and their dilation. Along the first axis,
  // the taps change slowest.
  std::vector<int64_t> axes, sizes, dilations;
};

// Returns the windows that slices with these start positions form; nullopt unless the start positions are a grid of at
// least two points, in row-major order.
std::optional<Taps> taps_of(const std::vector<std::vector<int64_t>>& starts) {
  Taps taps;
  int64_t period = static_cast<int64_t>(starts.size());
  for (size_t axis = 0; axis < starts[0].size(); ++axis) {
    // Along this axis, the start position changes for the first time after `rest` slices, and has `size` different
    // values before it repeats.
    int64_t rest = 1, size = 1;
    const auto at = [&](int64_t i) { return starts[i][axis]; };
    while (rest < period && at(rest) == at(0)) ++rest;
    if (rest == period) continue;
    const int64_t dilation = at(rest) - at(0);
    while (size * rest < period && at(size * rest) == at(0) + size * dilation) ++size;
    if (dilation < 1 || size * rest != period) return std::nullopt;
    taps.axes.push_back(static_cast<int64_t>(axis));
    taps.sizes.push_back(size);
    taps.dilations.push_back(dilation);
    period = rest;
  }
  if (taps.axes.empty() || period != 1) return std::nullopt;
  for (size_t i = 0; i < starts.size(); ++i) {
    std::vector<int64_t> expected = starts[0];
    int64_t rest = static_cast<int64_t>(i);
    for (size_t t = taps.axes.size(); t-- > 0; rest /= taps.sizes[t])
      expected[taps.axes[t]] += rest % taps.sizes[t] * taps.dilations[t];
    if (starts[i] != expected) return std::nullopt;
  }
  return taps;
}

int64_t product(Shape::const_iterator begin, Shape::const_iterator end) {
  return std::accumulate(begin, end, int64_t{1}, std::multiplies<>());
}

}  // namespace

std::optional<NodeId> concat_window(Builder& to, const Node& node) {
  if (node.op != Op::concat || node.operands.size() < 2 || elements(node.shape) == 0) return std::nullopt;
  const int64_t axis = node.ints[0];
  const Node* first = slice_behind(to, node.operands[0]);
  if (first == nullptr || node.shape[axis] != static_cast<int64_t>(node.operands.size())) return std::nullopt;
  std::vector<std::vector<int64_t>> starts;
  for (NodeId operand : node.operands) {
    const Node* slice = slice_behind(to, operand);
    if (slice == nullptr || to.node(operand).shape[axis] != 1 || slice->operands != first->operands ||
        slice->shape != first->shape || slice->ints2 != first->ints2)
      return std::nullopt;
    starts.push_back(slice->ints);
  }
  const std::optional<Taps> taps = taps_of(starts);
  if (!taps) return std::nullopt;

  const Node slice = *first;
  Node window{.op = Op::window, .ints = taps->axes};
  std::vector<int64_t> steps = slice.ints2;
  Shape whole = slice.shape;
  for (size_t t = 0; t < taps->axes.size(); ++t) {
    const int64_t along = taps->axes[t];
    // With one position, no windows overlap along this axis, so nothing is gained; and a window's stride is at least 1.
    if (whole[along] == 1 || steps[along] < 1) return std::nullopt;
    window.ints2.insert(window.ints2.end(), {taps->sizes[t], steps[along], taps->dilations[t]});
    whole[along] = (whole[along] - 1) * steps[along] + (taps->sizes[t] - 1) * taps->dilations[t] + 1;
    steps[along] = 1;
  }
  // The axes of taps that the window adds take the place of the axis of the concat.
  size_t before = 0;
  const int64_t outside = product(node.shape.begin(), node.shape.begin() + axis);
  while (product(slice.shape.begin(), slice.shape.begin() + static_cast<int64_t>(before)) != outside) {
    if (++before > slice.shape.size()) return std::nullopt;
  }
  std::vector<int64_t> perm(slice.shape.size() + taps->axes.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin() + static_cast<int64_t>(before), perm.begin() + static_cast<int64_t>(slice.shape.size()),
              perm.end());
  window.operands = {to.slice(slice.operands[0], slice.ints, steps, whole)};
  return to.reshape(to.transpose(to.add_node(std::move(window)), perm), node.shape);
}

}  // namespace wl::rule
