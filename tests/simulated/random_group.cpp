#include "tests/simulated/random_group.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace wl::testing {
namespace {

class Generator {
 public:
  Generator(uint64_t seed, int64_t largest) : random_(seed), largest_(largest) {}

  Graph graph() {
    constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f32, DType::f16, DType::bf16, DType::i32};
    dtype_ = kTypes[below(std::size(kTypes))];
    const int64_t rank = 1 + below(4);
    for (int64_t i = 0; i < rank; ++i) shape_.push_back(extent(std::max<int64_t>(1, largest_ / elements(shape_))));
    std::shuffle(shape_.begin(), shape_.end(), random_);
    for (int64_t i = 0; i < rank; ++i)
      if (chance(40)) axes_.push_back(i);
    wide_.push_back(input(shape_));
    const int64_t stages = axes_.empty() ? 0 : below(4);
    // Whether the latest stage ended with exp(v - max v). If so, the next stage sums these values.
    bool powers = false;
    for (int64_t stage = 0; stage <= stages; ++stage) {
      for (int64_t i = powers ? -1 : below(4); i >= 0; --i) wide_.push_back(elementwise());
      if (stage == stages) break;
      const NodeId value = wide_.back(), result = reduce(powers);
      narrow_.push_back(result);
      powers = node(result).op == Op::reduce_max && is_float(dtype_) && chance(70);
      if (powers) {
        wide_.push_back(apply(Op::exp, {apply(Op::sub, {value, back(result)})}));
        continue;
      }
      if (stage + 1 < stages || chance(70)) wide_.push_back(apply(Op::sub, {wide_.back(), back(result)}));
    }
    if (!narrow_.empty() && chance(40)) narrow_.push_back(apply(Op::neg, {narrow_.back()}));
    output(narrow_.empty() || chance(70) ? wide_.back() : narrow_.back());
    for (int64_t i = below(3); i > 0; --i) output(any(chance(50) || narrow_.empty() ? wide_ : narrow_));
    for (int i = 0; i < static_cast<int>(outputs_.size()); ++i) graph_.outputs.push_back({cat("y", i), outputs_[i]});
    graph_ = prune(graph_, true);
    WL_CHECK(verify(graph_).ok(), verify(graph_).ToString());
    return std::move(graph_);
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  NodeId any(const std::vector<NodeId>& of) { return of[below(static_cast<int64_t>(of.size()))]; }
  const Node& node(NodeId id) const { return graph_.nodes[id]; }

  int64_t extent(int64_t most) {
    constexpr int64_t kExtents[] = {1,  2,  3,  4,  5,  7,   8,   12,  15,  16,  17,  24,   31,   32,
                                    33, 36, 48, 63, 64, 100, 128, 130, 192, 255, 256, 1000, 1024, 3000};
    int64_t fitting = 0;
    while (fitting < static_cast<int64_t>(std::size(kExtents)) && kExtents[fitting] <= most) ++fitting;
    return kExtents[below(std::max<int64_t>(1, fitting))];
  }

  NodeId add(Node node) {
    const absl::Status status = infer(graph_.nodes, node);
    WL_CHECK(status.ok(), status.ToString());
    graph_.nodes.push_back(std::move(node));
    return static_cast<NodeId>(graph_.nodes.size()) - 1;
  }
  NodeId apply(Op op, std::vector<NodeId> operands) { return add({.op = op, .operands = std::move(operands)}); }

  NodeId input(Shape shape) {
    Node result{.op = Op::input, .dtype = dtype_, .shape = std::move(shape)};
    result.text = cat("x", graph_.nodes.size());
    result.fill = {.low = -1000, .high = 1000};
    return add(std::move(result));
  }

  NodeId repeated(NodeId x, std::vector<int64_t> dims) {
    return add({.op = Op::broadcast, .shape = shape_, .operands = {x}, .ints = std::move(dims)});
  }

  // Returns a value of the group's full shape (shape_) that is read from one or two inputs.
  NodeId operand() {
    const auto rank = static_cast<int64_t>(shape_.size());
    switch (below(8)) {
      case 0: {  // an operand that is broadcast along some axes
        Shape shape;
        std::vector<int64_t> dims;
        for (int64_t i = 0; i < rank; ++i)
          if (chance(50)) dims.push_back(i), shape.push_back(shape_[i]);
        return repeated(input(shape), dims);
      }
      case 1: {  // an operand that is stored transposed
        std::vector<int64_t> perm(rank);
        std::iota(perm.begin(), perm.end(), 0);
        std::shuffle(perm.begin(), perm.end(), random_);
        Shape shape(rank);
        for (int64_t i = 0; i < rank; ++i) shape[perm[i]] = shape_[i];
        return add({.op = Op::transpose, .operands = {input(shape)}, .ints = perm});
      }
      case 2: {  // an operand that is sliced from a longer one, sometimes with step -1 or 2
        const int64_t axis = below(rank), step = chance(70) ? 1 : chance(50) ? 2 : -1, start = below(5);
        Shape from = shape_;
        std::vector<int64_t> starts(rank, 0), steps(rank, 1);
        from[axis] = start + (shape_[axis] - 1) * std::abs(step) + 1 + below(4);
        starts[axis] = step < 0 ? start + shape_[axis] - 1 : start;
        steps[axis] = step;
        return add({.op = Op::slice, .shape = shape_, .operands = {input(from)}, .ints = starts, .ints2 = steps});
      }
      case 3: {  // an operand that is padded
        const int64_t axis = below(rank), low = std::min<int64_t>(shape_[axis] - 1, below(3));
        const int64_t high = std::min<int64_t>(shape_[axis] - 1 - low, below(3));
        Shape from = shape_;
        std::vector<int64_t> lows(rank, 0), highs(rank, 0);
        from[axis] -= low + high;
        lows[axis] = low;
        highs[axis] = high;
        Node result{.op = Op::pad, .operands = {input(from)}, .ints = lows, .ints2 = highs};
        result.value = static_cast<double>(below(2));
        return add(std::move(result));
      }
      case 4: {  // an operand that is a concat
        const int64_t axis = below(rank), first = shape_[axis] / 2;
        if (first == 0) return input(shape_);
        Shape one = shape_, other = shape_;
        one[axis] = first;
        other[axis] -= first;
        return add({.op = Op::concat, .operands = {input(one), input(other)}, .ints = {axis}});
      }
      case 5: {  // an operand that is gathered by an index
        const int64_t axis = below(rank);
        Shape table = shape_;
        table[axis] = 2 + below(9);
        Node index{.op = Op::input, .dtype = chance(50) ? DType::i64 : DType::i32, .shape = shape_};
        index.text = cat("x", graph_.nodes.size());
        index.fill = {.low = -table[axis], .high = table[axis]};
        const NodeId picks = add(std::move(index));
        return add({.op = Op::take_along, .operands = {input(table), picks}, .ints = {axis}});
      }
      default:
        return input(shape_);
    }
  }

  NodeId elementwise() {
    constexpr Op kOne[] = {Op::tanh, Op::sigmoid, Op::exp, Op::abs, Op::neg, Op::erf};
    constexpr Op kTwo[] = {Op::add, Op::sub, Op::mul, Op::max, Op::min};
    const NodeId x = any(chance(70) ? std::vector<NodeId>{wide_.back()} : wide_);
    if (chance(40)) {
      const Op op = kOne[below(std::size(kOne))];
      // Integers get only arithmetic ops. The operand of exp is limited by tanh, since an exponential of an exponential
      // would overflow.
      if (!is_float(dtype_)) return apply(Op::neg, {x});
      return apply(op, {op == Op::exp ? apply(Op::tanh, {x}) : x});
    }
    // The two operands differ if possible, since the difference of a value and itself is zero. Integers are added
    // instead of multiplied, so that they do not overflow.
    NodeId y = any(wide_);
    if (y == x || chance(60)) y = operand();
    const Op op = kTwo[below(std::size(kTwo))];
    return apply(op == Op::mul && !is_float(dtype_) ? Op::add : op, {x, y});
  }

  NodeId reduce(bool sum) {
    const Op op = sum || chance(50) ? Op::reduce_sum : chance(60) ? Op::reduce_max : Op::reduce_min;
    return add({.op = op, .operands = {wide_.back()}, .ints = axes_});
  }

  // Broadcasts a result of a reduction along the axes that were reduced.
  NodeId back(NodeId result) {
    std::vector<int64_t> dims;
    for (int64_t i = 0; i < static_cast<int64_t>(shape_.size()); ++i)
      if (!std::count(axes_.begin(), axes_.end(), i)) dims.push_back(i);
    return repeated(result, dims);
  }

  void output(NodeId id) {
    if (!std::count(outputs_.begin(), outputs_.end(), id)) outputs_.push_back(id);
  }

  std::mt19937_64 random_;
  const int64_t largest_;
  DType dtype_ = DType::f32;
  Shape shape_;
  std::vector<int64_t> axes_;  // the axes that the group reduces
  std::vector<NodeId> wide_, narrow_, outputs_;
  Graph graph_;
};

}  // namespace

Graph random_group(uint64_t seed, int64_t largest) {
  return Generator(seed, largest).graph();
}

}  // namespace wl::testing
