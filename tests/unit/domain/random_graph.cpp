#include <gtest/gtest.h>

#include "compiler/base/splitmix.h"
#include "compiler/ir/build.h"
#include "tests/unit/domain/domain_testing.h"

namespace wl {
namespace {

struct Random {
  uint64_t state;
  uint64_t next() { return split_mix(state); }
  int below(int n) { return static_cast<int>(next() % static_cast<uint64_t>(n)); }
};

class PlanGenerator {
 public:
  explicit PlanGenerator(uint64_t seed) : random_{seed} {}

  Graph graph(int steps) {
    const Shape base = {2, 4, 6};
    values_.push_back(builder_.input("x", DType::f32, base));
    values_.push_back(builder_.input("y", DType::f32, random_.below(2) ? Shape{8, 6} : Shape{6, 8}));
    values_.push_back(builder_.input("z", DType::f32, {6}));
    if (steps == 0) steps = 2 + random_.below(9);
    for (int i = 0; i < steps; ++i) step();
    builder_.output("o", values_.back());
    if (random_.below(4) == 0) builder_.output("p", values_[random_.below(static_cast<int>(values_.size()))]);
    absl::StatusOr<Graph> graph = builder_.finish();
    EXPECT_TRUE(graph.ok()) << graph.status();
    return graph.ok() ? *graph : Graph();
  }

 private:
  NodeId pick() {  // returns mostly recent values, so that graphs are deep
    const int n = static_cast<int>(values_.size());
    return values_[random_.below(3) ? n - 1 - random_.below(std::min(n, 3)) : random_.below(n)];
  }
  const Shape& shape(NodeId id) { return builder_.node(id).shape; }

  NodeId fit(NodeId x, const Shape& to) {
    if (shape(x) == to) return x;
    if (elements(shape(x)) == elements(to)) return builder_.reshape(x, to);
    // Broadcasts x if its axes match axes of `to` in order, searched from the right; otherwise returns a constant.
    const Shape from = shape(x);
    std::vector<int64_t> dims;
    for (size_t i = to.size(), k = from.size(); i-- > 0 && k > 0;)
      if (to[i] == from[k - 1]) {
        dims.insert(dims.begin(), static_cast<int64_t>(i));
        --k;
      }
    if (dims.size() == from.size()) return builder_.broadcast(x, to, dims);
    return builder_.constant(2.5, DType::f32, to);
  }

  void step() {
    const NodeId x = pick();
    const Shape s = shape(x);
    const int rank = static_cast<int>(s.size());
    switch (random_.below(13)) {
      case 0:
      case 1:
        values_.push_back(builder_.add(x, fit(pick(), s)));
        return;
      case 2:
        values_.push_back(builder_.elementwise(Op::tanh, {x}));
        return;
      case 3: {
        std::vector<int64_t> perm(rank);
        for (int i = 0; i < rank; ++i) perm[i] = i;
        for (int i = rank; i-- > 1;) std::swap(perm[i], perm[random_.below(i + 1)]);
        values_.push_back(builder_.transpose(x, perm));
        return;
      }
      case 4: {
        const int64_t n = elements(s);
        Shape to;
        int64_t rest = n;
        for (int64_t f : {4, 3, 2})
          if (rest % f == 0 && random_.below(2)) {
            to.push_back(f);
            rest /= f;
          }
        to.insert(to.begin() + random_.below(static_cast<int>(to.size()) + 1), rest);
        values_.push_back(builder_.reshape(x, to));
        return;
      }
      case 5: {
        if (rank == 0) return;
        std::vector<int64_t> starts(rank, 0), steps(rank, 1);
        Shape to = s;
        const int axis = random_.below(rank);
        if (to[axis] < 2) return;
        to[axis] /= 2;
        if (random_.below(2)) {
          steps[axis] = 2;
        } else if (random_.below(2)) {
          starts[axis] = s[axis] - 1;
          steps[axis] = -1;
        } else {
          starts[axis] = s[axis] - to[axis];
        }
        values_.push_back(builder_.slice(x, starts, steps, to));
        return;
      }
      case 6:
      case 7: {
        if (rank == 0) return;
        const Op op = random_.below(2) ? Op::reduce_sum : Op::reduce_max;
        const int64_t axis = random_.below(rank);
        if (random_.below(2)) {
          std::vector<int64_t> kept;
          for (int64_t i = 0; i < rank; ++i)
            if (i != axis) kept.push_back(i);
          const NodeId r = builder_.reduce(op, x, {axis});
          values_.push_back(builder_.sub(x, builder_.broadcast(r, s, kept)));
        } else {
          values_.push_back(builder_.reduce(op, x, {axis}));
        }
        return;
      }
      case 8:
        if (rank > 0) pad(x);
        return;
      case 9:
        if (rank > 0) concat(x);
        return;
      case 10:
        if (rank > 0) window(x);
        return;
      case 11:
        if (rank > 0) take(x);
        return;
      default: {
        const NodeId y = pick();
        if (rank == 2 && shape(y).size() == 2 && s[1] == shape(y)[0])
          values_.push_back(builder_.contract(x, y, "mk,kn->mn"));
        else if (rank == 2 && shape(y).size() == 2 && s[1] == shape(y)[1])
          values_.push_back(builder_.contract(x, y, "mk,nk->mn"));
        return;
      }
    }
  }

  static constexpr int64_t kLargest = 600;  // largest number of elements of a value

  void pad(NodeId x) {
    const Shape s = shape(x);
    std::vector<int64_t> low(s.size(), 0), high(s.size(), 0);
    for (int i = 1 + random_.below(2); i > 0; --i) {
      const int axis = random_.below(static_cast<int>(s.size()));
      low[axis] = random_.below(3);
      high[axis] = random_.below(3);
    }
    int64_t size = 1;
    for (size_t i = 0; i < s.size(); ++i) size *= s[i] + low[i] + high[i];
    if (size > kLargest) return;
    values_.push_back(builder_.add_node(
        {.op = Op::pad, .operands = {x}, .ints = low, .ints2 = high, .value = random_.below(3) ? 0 : 1.5}));
  }

  void concat(NodeId x) {
    const Shape s = shape(x);
    const int axis = random_.below(static_cast<int>(s.size()));
    std::vector<NodeId> parts = {x};
    for (int i = 1 + random_.below(3); i > 0; --i) {
      const NodeId y = pick();
      Shape like = shape(y);
      if (like.size() == s.size()) like[axis] = s[axis];
      parts.push_back(like == s ? y : random_.below(2) ? builder_.constant(0.5, DType::f32, s) : x);
    }
    if (random_.below(2)) std::swap(parts[0], parts.back());
    int64_t size = 0;
    for (NodeId part : parts) size += elements(shape(part));
    if (size <= kLargest) values_.push_back(builder_.add_node({.op = Op::concat, .operands = parts, .ints = {axis}}));
  }

  void window(NodeId x) {
    const Shape s = shape(x);
    const int axis = random_.below(static_cast<int>(s.size()));
    const int64_t size = 1 + random_.below(3), stride = 1 + random_.below(2), dilation = 1 + random_.below(2);
    if (s[axis] < (size - 1) * dilation + 1 || elements(s) * size > kLargest) return;
    values_.push_back(
        builder_.add_node({.op = Op::window, .operands = {x}, .ints = {axis}, .ints2 = {size, stride, dilation}}));
  }

  // Adds a take_along on one axis, over the whole axis or its first two positions. Each position reads the element at
  // its own coordinate, or all positions read the last element.
  void take(NodeId x) {
    const Shape s = shape(x);
    const int axis = random_.below(static_cast<int>(s.size()));
    if (elements(s) == 0) return;
    Shape to = s;
    if (random_.below(2)) to[axis] = std::min<int64_t>(2, s[axis]);
    const NodeId index = random_.below(3) ? builder_.iota(DType::i64, to, axis) : builder_.constant(-1, DType::i64, to);
    values_.push_back(builder_.take_along(x, index, axis));
  }

  Random random_;
  Builder builder_;
  std::vector<NodeId> values_;
};

}  // namespace

Graph random_domain_graph(uint64_t seed, int steps) {
  return PlanGenerator(seed).graph(steps);
}

}  // namespace wl
