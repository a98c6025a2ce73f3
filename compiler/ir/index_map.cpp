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

IndexMap view_map(const Node& view, const Shape& operand) {
  std::vector<int64_t> from = row_major_strides(operand);
  std::vector<int64_t> strides(view.shape.size(), 0);
  int64_t offset = 0;
  switch (view.op) {
    case Op::transpose:
      for (size_t i = 0; i < strides.size(); ++i) strides[i] = from[view.ints[i]];
      break;
    case Op::broadcast:
      for (size_t i = 0; i < from.size(); ++i) strides[view.ints[i]] = from[i];
      break;
    case Op::slice:
      for (size_t i = 0; i < from.size(); ++i) {
        strides[i] = from[i] * view.ints2[i];
        offset += from[i] * view.ints[i];
      }
      break;
    case Op::window:
      for (size_t i = 0; i < from.size(); ++i) strides[i] = from[i];
      for (size_t i = 0; i < view.ints.size(); ++i) {
        int64_t axis = from[view.ints[i]];
        strides[view.ints[i]] = axis * view.ints2[3 * i + 1];
        strides[from.size() + i] = axis * view.ints2[3 * i + 2];
      }
      break;
    default:
      WL_CHECK(false, name_of(view.op), " is not an affine view");
  }
  return IndexMap(view.shape, strides, offset);
}

}  // namespace wl
