#include "compiler/ir/index_map.h"

namespace wl {

IndexMap::IndexMap(const Shape& shape, const std::vector<int64_t>& axis_strides, int64_t start) : offset(start) {
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (!extents.empty() && strides.back() == axis_strides[i] * shape[i]) {
      extents.back() *= shape[i];
      strides.back() = axis_strides[i];
    } else {
      extents.push_back(shape[i]);
      strides.push_back(axis_strides[i]);
    }
  }
}

int64_t IndexMap::operator()(int64_t index) const {
  int64_t at = offset;
  for (size_t i = extents.size(); i-- > 0;) {
    int64_t rest = index / extents[i];
    at += (index - rest * extents[i]) * strides[i];
    index = rest;
  }
  return at;
}

std::vector<int64_t> IndexMap::all() const {
  int64_t n = elements(extents);
  std::vector<int64_t> result(static_cast<size_t>(n));
  IndexCursor cursor(*this);
  for (int64_t i = 0; i < n; ++i) result[static_cast<size_t>(i)] = cursor(i);
  return result;
}

namespace {

using Axes = std::vector<ViewMap::Axis>;

// The functions that ops.def names in its rows of views. Each sets `Axes`, which has an entry for each axis of the
// operand, to where the operand is read for a coordinate of the view. Before the call, axis i of the operand is axis i
// of the view.

void no_axes(const Node& view, Axes&) {
  WL_CHECK(false, name_of(view.op), " maps no axes");
}

void axes_of_transpose(const Node& view, Axes& axes) {
  for (size_t i = 0; i < axes.size(); ++i) axes[view.ints[i]].steps = {{i, 1}};
}

void axes_of_broadcast(const Node& view, Axes& axes) {
  for (size_t i = 0; i < axes.size(); ++i) axes[i].steps = {{static_cast<size_t>(view.ints[i]), 1}};
}

void axes_of_slice(const Node& view, Axes& axes) {
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = {view.ints[i], {{i, view.ints2[i]}}};
}

void axes_of_pad(const Node& view, Axes& axes) {
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = {-view.ints[i], {{i, 1}}, view.ints[i] != 0 || view.ints2[i] != 0};
}

void axes_of_window(const Node& view, Axes& axes) {
  for (size_t i = 0; i < view.ints.size(); ++i) {
    const auto axis = static_cast<size_t>(view.ints[i]);
    axes[axis].steps = {{axis, view.ints2[3 * i + 1]}, {axes.size() + i, view.ints2[3 * i + 2]}};
  }
}

}  // namespace

ViewMap view_map(const Node& view, const Shape& operand) {
  ViewMap map{Axes(operand.size()), operand, view.shape};
  for (size_t i = 0; i < operand.size(); ++i) map.axes[i].steps = {{i, 1}};
  switch (view.op) {
#define WL_VIEW(id, arity, ints, ints2, kind, axes_of) \
  case Op::id:                                         \
    axes_of(view, map.axes);                           \
    break;
#include "compiler/ir/ops.def"
    default:
      no_axes(view, map.axes);
  }
  return map;
}

std::optional<size_t> ViewMap::unmoved(size_t axis) const {
  const Axis& at = axes[axis];
  if (at.padded || at.base != 0 || at.steps.size() != 1 || at.steps[0].by != 1) return std::nullopt;
  return to[at.steps[0].axis] == from[axis] ? std::optional(at.steps[0].axis) : std::nullopt;
}

IndexMap index_map(const Node& view, const Shape& operand) {
  const ViewMap map = view_map(view, operand);
  const std::vector<int64_t> from = row_major_strides(operand);
  std::vector<int64_t> strides(view.shape.size(), 0);
  int64_t offset = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    WL_CHECK(!map.axes[i].padded, name_of(view.op), " pads");
    offset += from[i] * map.axes[i].base;
    for (const ViewMap::Step& step : map.axes[i].steps) strides[step.axis] += from[i] * step.by;
  }
  return IndexMap(view.shape, strides, offset);
}

}  // namespace wl
