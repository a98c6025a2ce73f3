// An affine map from the elements of one tensor to the elements of another, both given by their row-major indices. It
// describes transposes, broadcasts, slices and windows, and how reductions and contractions read their operands.
// Neighbouring axes that have a common stride are merged, and axes of extent 1 are left out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

struct IndexMap {
  Shape extents;
  std::vector<int64_t> strides;  // for each extent, the stride in elements of the tensor that is mapped to
  int64_t offset = 0;

  IndexMap() = default;
  IndexMap(const Shape& shape, const std::vector<int64_t>& strides, int64_t offset);
  int64_t operator()(int64_t index) const;
  // Returns the mapped index of every element of a tensor of shape `extents`, in row-major order.
  std::vector<int64_t> all() const;
};

// Evaluates an IndexMap at increasing indices. An index that follows its predecessor in the same row costs one addition
// instead of divisions.
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

// Where a view of kind kAxes (ops.def) reads each of its elements in its operand.
struct ViewMap {
  struct Step {
    size_t axis = 0;  // the number of an axis of the view
    int64_t by = 1;
  };
  // The coordinate along one axis of the operand is `base` plus the sum of by * (the view's coordinate along `axis`)
  // over all `steps`. If `padded` is set, this coordinate may lie outside the operand; such an element of the view has
  // the value Node::value.
  struct Axis {
    int64_t base = 0;
    std::vector<Step> steps = {};
    bool padded = false;
  };
  std::vector<Axis> axes;  // one entry for each axis of the operand
  Shape from, to;          // the shape of the view's operand, and the shape of the view

  // Returns the axis of the view whose coordinate always equals that along `axis` of the operand; nullopt if there is
  // none.
  std::optional<size_t> unmoved(size_t axis) const;
};
ViewMap view_map(const Node& view, const Shape& operand);

// Returns the map from the elements of a view to the elements of its operand. The view must be of kind kAxes and must
// not be a pad that adds elements.
IndexMap index_map(const Node& view, const Shape& operand);

}  // namespace wl
