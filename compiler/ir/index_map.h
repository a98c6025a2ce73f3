// An affine map from the elements of one tensor to the elements of another, both given by their row-major numbers. It
// describes transposes, broadcasts, slices and windows, and how reductions and contractions read their operands.
// Neighbouring axes that a single stride walks through are merged, and axes of extent 1 are left out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

struct IndexMap {
  Shape extents;
  std::vector<int64_t> strides;  // stride in the target tensor for each extent
  int64_t offset = 0;

  IndexMap() = default;
  IndexMap(const Shape& shape, const std::vector<int64_t>& strides, int64_t offset);
  int64_t operator()(int64_t index) const;
  // Returns the elements that all elements map to, in row-major order.
  std::vector<int64_t> all() const;
};

// Evaluates an IndexMap at increasing indices. The next index within a row costs one addition instead of divisions.
class IndexCursor {
 public:
  explicit IndexCursor(const IndexMap& map) : map_(map) {}
  int64_t operator()(int64_t index) {
    if (index == next_ && left_ > 0) {
      at_ += map_.strides.back();
      --left_;
    } else {
      at_ = map_(index);
      left_ = map_.extents.empty() ? 0 : map_.extents.back() - 1 - index % map_.extents.back();
    }
    next_ = index + 1;
    return at_;
  }

 private:
  const IndexMap& map_;
  int64_t next_ = -1, left_ = 0, at_ = 0;
};

// Where in its operand a view of kind kAxes (ops.def) reads each of its elements.
struct ViewMap {
  struct Step {
    size_t axis = 0;  // an axis of the view
    int64_t by = 1;
  };
  // The coordinate along one axis of the operand is base + the sum over `steps` of by * (the view's coordinate along
  // axis). If `padded` is set, that coordinate may lie outside the operand; the element is then the node's `value`.
  struct Axis {
    int64_t base = 0;
    std::vector<Step> steps = {};
    bool padded = false;
  };
  std::vector<Axis> axes;  // one for each axis of the operand
  Shape from, to;          // shape of the operand, shape of the view

  // Returns the axis of the view that runs over all of an operand axis in the same order; nullopt if there is none.
  std::optional<size_t> unmoved(size_t axis) const;
};
ViewMap view_map(const Node& view, const Shape& operand);

// Returns the map from the elements of a view of kind kAxes, which must not be a pad that adds elements, to its
// operand's.
IndexMap index_map(const Node& view, const Shape& operand);

}  // namespace wl
