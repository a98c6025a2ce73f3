// Moves elementwise work on the operands of a concat behind the concat. The work is then done where the concatenated
// value is read, so that its operands need not be stored. A kernel reads pads and concats of stored values through
// guards (conditions that a coordinate lies within its extent), but cannot do so for values that it computes itself
// (docs/design/kernels.md#guarded-access).
#include <algorithm>
#include <limits>
#include <set>

#include "compiler/ir/rules/internal.h"

namespace wl::rule {
namespace {

// Work that has moved behind the concat is computed for every part of the concat at all positions of the concatenated
// value. These two limits bound this additional work.
constexpr int kMaxWork = 8;  // the most elementwise work that is moved, in issue slots per element
constexpr size_t kMaxConcatParts = 4;

bool is_view(const Node& node) {
  return class_of(node.op) == OpClass::kView;
}

// Returns the value behind a chain of views. Sets `cut` if one of the views is a slice, pad, concat or window: a kernel
// can apply these only to a value in memory.
NodeId behind(const Builder& to, NodeId id, bool* cut) {
  for (; is_view(to.node(id)); id = to.node(id).operands[0]) {
    const Op op = to.node(id).op;
    *cut = *cut || (op != Op::reshape && op != Op::transpose && op != Op::broadcast);
  }
  return id;
}

// A part of the concat: either neighbouring operands that are read unchanged, or one operand that elementwise ops
// compute (`work` is true).
struct Part {
  std::vector<NodeId> operands = {};
  bool work = false;
  int64_t extent = 0;
};

class Rewrite {
 public:
  Rewrite(Builder& to, const Node& concat) : to_(to), shape_(concat.shape), axis_(static_cast<size_t>(concat.ints[0])) {
    std::vector<char> works;
    std::vector<NodeId> bases;
    for (NodeId operand : concat.operands) {
      bool cut = false;
      works.push_back(is_work(operand));
      bases.push_back(behind(to, operand, &cut));
    }
    // An operand that is read unchanged is a view of a value that must be stored anyway. So that value counts as in
    // memory when it is decided which of the other operands are read unchanged.
    const std::vector<char> alone = works;
    keep_plain(works, bases);
    for (size_t i = 0; i < works.size(); ++i) {
      if (alone[i]) continue;
      in_memory_.erase(bases[i]);
      works[i] = is_work(concat.operands[i]);
      in_memory_.insert(bases[i]);
    }
    keep_plain(works, bases);
    for (size_t i = 0; i < works.size(); ++i) {
      if (works[i] || parts_.empty() || parts_.back().work) parts_.push_back({.work = works[i] != 0});
      parts_.back().operands.push_back(concat.operands[i]);
      parts_.back().extent += to.node(concat.operands[i]).shape[axis_];
    }
  }

  bool applies() const {
    return parts_.size() <= kMaxConcatParts &&
           std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.work; });
  }

  NodeId build() {
    const DType count = shape_[axis_] <= std::numeric_limits<int32_t>::max() ? DType::i32 : DType::i64;
    int64_t end = shape_[axis_];
    NodeId result = -1;
    for (size_t i = parts_.size(); i-- > 0;) {
      low_ = end - parts_[i].extent;
      high_ = shape_[axis_] - end;
      const NodeId value = part(parts_[i]);
      if (result < 0) {
        result = value;
      } else {
        const NodeId place = to_.iota(count, shape_, static_cast<int>(axis_));
        const NodeId bound = to_.constant(static_cast<double>(end), count, shape_);
        result = to_.elementwise(Op::select, {to_.elementwise(Op::lt, {place, bound}), value, result});
      }
      end = low_;
    }
    return result;
  }

 private:
  void keep_plain(const std::vector<char>& works, const std::vector<NodeId>& bases) {
    in_memory_.clear();
    for (size_t i = 0; i < works.size(); ++i)
      if (!works[i]) in_memory_.insert(bases[i]);
  }

  bool stored(NodeId id) const {
    bool cut = false;
    const NodeId base = behind(to_, id, &cut);
    return cut || class_of(to_.node(base).op) == OpClass::kLeaf || in_memory_.contains(base);
  }

  bool is_work(NodeId id) {
    if (stored(id)) return false;
    const int before = cost_;
    if (visit(id)) return true;
    cost_ = before;
    return false;
  }

  bool visit(NodeId id) {
    const Node& node = to_.node(id);
    if (stored(id)) return true;
    if (is_view(node)) return visit(node.operands[0]);
    if (class_of(node.op) != OpClass::kElementwise || (cost_ += info(node.op).cost) > kMaxWork) return false;
    return std::all_of(node.operands.begin(), node.operands.end(), [this](NodeId operand) { return visit(operand); });
  }

  NodeId part(const Part& part) {
    if (part.work) return widened(part.operands[0], {});
    if (part.operands.size() == 1) return pad(part.operands[0]);
    return pad(to_.add_node({.op = Op::concat, .operands = part.operands, .ints = {static_cast<int64_t>(axis_)}}));
  }

  NodeId pad(NodeId x) {
    Node node{.op = Op::pad, .operands = {x}};
    node.ints.assign(shape_.size(), 0);
    node.ints2 = node.ints;
    node.ints[axis_] = low_;
    node.ints2[axis_] = high_;
    return to_.add_node(std::move(node));
  }

  // Returns the value `id` with `views` applied to it (the last entry first), padded to the shape of the concatenated
  // value.
  NodeId widened(NodeId id, std::vector<NodeId> views) {
    Node node = to_.node(id);
    if (node.op == Op::constant) return to_.constant(node.value, node.dtype, shape_);
    if (stored(id)) {
      for (; !views.empty(); views.pop_back()) {
        Node view = to_.node(views.back());
        view.operands = {id};
        id = to_.add_node(std::move(view));
      }
      return pad(id);
    }
    if (is_view(node)) {
      views.push_back(id);
      return widened(node.operands[0], std::move(views));
    }
    Node wide{.op = node.op, .dtype = node.dtype};
    for (NodeId operand : node.operands) wide.operands.push_back(widened(operand, views));
    return to_.add_node(std::move(wide));
  }

  Builder& to_;
  const Shape shape_;
  const size_t axis_;
  std::vector<Part> parts_;
  std::set<NodeId> in_memory_;
  int cost_ = 0;
  int64_t low_ = 0, high_ = 0;  // extents along axis_ of all parts before and after the part being built
};

}  // namespace

Result concat_elementwise(Builder& to, const Node& node) {
  if (node.op != Op::concat || node.operands.size() < 2 || elements(node.shape) == 0) return std::nullopt;
  Rewrite rewrite(to, node);
  if (!rewrite.applies()) return std::nullopt;
  return rewrite.build();
}

}  // namespace wl::rule
