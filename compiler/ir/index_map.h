// An affine map from the elements of one tensor (row-major numbers) to those of another. It describes transposes,
// broadcasts, slices, windows, and how reductions and contractions read their operands. Axes that one stride spans are
// merged.
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
  // Returns the targets of all elements, in row-major order.
  std::vector<int64_t> all() const;
};

// An IndexMap for increasing indices: a step within a row is an addition.
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

// How the coordinates of a view of kind kAxes lie in its operand.
struct ViewMap {
  struct Step {
    size_t axis = 0;  // of the view
    int64_t by = 1;
  };
  // The coordinate along an axis of the operand: base + sum of by * coordinate along axis. Where `padded` is set it may
  // lie outside, and the element is then the view's value.
  struct Axis {
    int64_t base = 0;
    std::vector<Step> steps = {};
    bool padded = false;
  };
  std::vector<Axis> axes;  // of the operand
  Shape from, to;          // of the operand, of the view

  // The axis of the view that runs over an axis of the operand exactly as it is.
  std::optional<size_t> unmoved(size_t axis) const;
};
ViewMap view_map(const Node& view, const Shape& operand);

// Where the elements of a view of kind kAxes that pads nothing lie in its operand.
IndexMap index_map(const Node& view, const Shape& operand);

}  // namespace wl
