#include "random_graph.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "compiler/ir/build.h"

namespace wl {
namespace {

class Generator {
 public:
  Generator(uint64_t seed, const RandomGraphOptions& options) : random_(seed), options_(options) {}

  Graph graph() {
    for (int64_t i = 0, n = 1 + below(3); i < n; ++i) input(random_shape(), random_dtype());
    for (int i = 0; i < options_.nodes; ++i) any_node();
    auto last = static_cast<NodeId>(graph_.nodes.size()) - 1;
    graph_.outputs.push_back({"y0", last});
    for (int64_t i = 0, n = below(3); i < n; ++i)
      graph_.outputs.push_back({cat("y", i + 1), static_cast<NodeId>(below(last + 1))});
    WL_CHECK(verify(graph_).ok(), verify(graph_).ToString());
    return std::move(graph_);
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  const Node& node(NodeId id) const { return graph_.nodes[id]; }

  Shape random_shape() {
    Shape shape(static_cast<size_t>(below(4)));
    for (int64_t& extent : shape) extent = options_.zero_extents && chance(1) ? 0 : 1 + below(5);
    return shape;
  }
  DType random_dtype() {
    if (options_.f32_only || chance(60)) return DType::f32;
    auto dtype = static_cast<DType>(below(kDTypeCount));
    return dtype == DType::u64 ? DType::u32 : dtype;  // no u64: -1 as u64 exceeds what a double holds exactly
  }

  NodeId add(Node node) {
    if (!infer(graph_.nodes, node).ok() || elements(node.shape) > options_.largest) return -1;
    graph_.nodes.push_back(std::move(node));
    return static_cast<NodeId>(graph_.nodes.size()) - 1;
  }
  NodeId input(Shape shape, DType dtype, Fill fill = {.low = -3, .high = 4}) {
    Node result{.op = Op::input, .dtype = dtype, .shape = std::move(shape)};
    result.text = cat("x", graph_.nodes.size());
    result.fill = fill;
    return add(std::move(result));
  }
  NodeId constant(DType dtype, Shape shape) {
    constexpr double kSpecial[] = {0, 1, 2, 3, 0.5, -1, 4, 0.1, -0.0};
    Node result{.op = Op::constant, .dtype = dtype, .shape = std::move(shape)};
    result.value = kSpecial[below(std::size(kSpecial))];
    return add(std::move(result));
  }
  // Returns the last node in half of the cases, so that chains of nodes form, otherwise a random node.
  NodeId pick() {
    auto n = static_cast<int64_t>(graph_.nodes.size());
    return static_cast<NodeId>(chance(50) ? n - 1 : below(n));
  }
  // Returns a node of this dtype and shape: an existing one, a broadcast of a smaller one, a constant or a new input.
  NodeId like(DType dtype, const Shape& shape) {
    std::vector<NodeId> fitting;
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
      if (node(id).dtype == dtype && node(id).shape == shape) fitting.push_back(id);
    }
    if (!fitting.empty() && chance(60)) return fitting[below(static_cast<int64_t>(fitting.size()))];
    if (chance(65)) return constant(dtype, shape);
    if (!shape.empty() && chance(50)) return broadcast(input(Shape(shape.begin() + 1, shape.end()), dtype), shape, 1);
    return input(shape, dtype);
  }
  NodeId broadcast(NodeId x, const Shape& shape, int64_t first) {
    if (x < 0) return -1;
    Node result{.op = Op::broadcast, .shape = shape, .operands = {x}};
    result.ints.resize(node(x).shape.size());
    std::iota(result.ints.begin(), result.ints.end(), first);
    return add(std::move(result));
  }

  // Adds patterns that occur in models but hardly ever by chance.
  void idiom() {
    NodeId x = pick();
    if (!is_float(node(x).dtype)) return;
    const Shape shape = node(x).shape;
    if (chance(50)) {
      forms(x);
    } else if (chance(50)) {
      NodeId root = add({.op = Op::sqrt, .operands = {add({.op = Op::abs, .operands = {x}})}});
      add({.op = Op::rcp, .operands = {root}});
    } else if (!shape.empty()) {
      NodeId top = add({.op = Op::reduce_max, .operands = {x}, .ints = {static_cast<int64_t>(shape.size()) - 1}});
      NodeId wide = broadcast(top, shape, 0);
      if (wide >= 0) add({.op = below(2) ? Op::sub : Op::div, .operands = {x, wide}});
      take_along();
    }
  }

  // Adds windows written as slices, sometimes with two slices exchanged.
  void taps(NodeId x) {
    const Shape shape = node(x).shape;
    const size_t rank = shape.size();
    std::vector<int64_t> size(rank, 1), dilation(rank, 1), first(rank, 0), steps(rank, 1);
    Shape out = shape;
    for (size_t i = 0; i < rank; ++i) {
      if (shape[i] == 0) return;
      steps[i] = 1 + below(2);
      if (chance(60)) size[i] = 1 + below((shape[i] + 1) / 2);
      if (size[i] > 1 && chance(30)) dilation[i] = 1 + below((shape[i] - 1) / (size[i] - 1));
      const int64_t room = shape[i] - 1 - (size[i] - 1) * dilation[i];
      out[i] = chance(60) ? room / steps[i] + 1 : 1 + below(room / steps[i] + 1);
      first[i] = below(room - (out[i] - 1) * steps[i] + 1);
    }
    const int64_t at = below(static_cast<int64_t>(rank) + 1);
    Shape placed = out;
    placed.insert(placed.begin() + at, 1);
    Node joined{.op = Op::concat, .ints = {at}};
    for (int64_t tap = 0; tap < elements(size); ++tap) {
      std::vector<int64_t> starts = first;
      int64_t rest = tap;
      for (size_t i = rank; i-- > 0; rest /= size[i]) starts[i] += rest % size[i] * dilation[i];
      const NodeId slice = add({.op = Op::slice, .shape = out, .operands = {x}, .ints = starts, .ints2 = steps});
      if (slice < 0) return;
      joined.operands.push_back(add({.op = Op::reshape, .shape = placed, .operands = {slice}}));
    }
    if (chance(15)) std::swap(joined.operands.front(), joined.operands.back());
    add(std::move(joined));
  }

  NodeId splat(double value, NodeId like) {
    Node result{.op = Op::constant, .dtype = node(like).dtype, .shape = node(like).shape};
    result.value = value;
    return add(std::move(result));
  }
  NodeId apply(Op op, std::vector<NodeId> operands) {
    if (std::find(operands.begin(), operands.end(), -1) != operands.end()) return -1;
    return add({.op = op, .operands = std::move(operands)});
  }

  // Adds sums and products with constants, in the orders in which exporters write them.
  void forms(NodeId x) {
    const Shape shape = node(x).shape;
    const NodeId other = like(node(x).dtype, shape);
    const double scale = below(2) ? 0.5 : 4;
    switch (below(6)) {
      case 0:
        x = apply(Op::add, {splat(1, x), apply(Op::exp, {apply(Op::neg, {x})})});
        if (x >= 0) below(2) != 0 ? apply(Op::rcp, {x}) : apply(Op::div, {splat(1, x), x});
        break;
      case 1:
        apply(Op::mul, {apply(Op::mul, {splat(scale, x), x}), other});
        break;
      case 2:
        apply(Op::mul, {splat(3, x), apply(Op::mul, {x, splat(scale, x)})});
        break;
      case 3:
        apply(Op::div, {other, apply(Op::sqrt, {apply(Op::abs, {x})})});
        break;
      case 4:
        apply(below(2) ? Op::add : Op::sub, {other, apply(Op::neg, {x})});
        break;
      default:
        apply(Op::mul, {x, splat(scale, x)});
        contract();
    }
  }

  // Returns dequantised eight-bit integers: scale * (integers - zero), sometimes with a scale per column, or padded.
  NodeId dequantised(Shape shape, DType dtype) {
    const bool is_signed = chance(50);
    NodeId x = input(shape, is_signed ? DType::i8 : DType::u8, {.low = is_signed ? -3 : 0, .high = 5});
    if (x < 0) return -1;
    x = add({.op = Op::cast, .dtype = dtype, .operands = {x}});
    if (chance(70)) x = apply(Op::sub, {x, splat(static_cast<double>(below(3)), x)});
    const NodeId scales = is_float(dtype) && chance(50) ? input({shape.back()}, dtype) : -1;
    if (scales >= 0) x = apply(Op::mul, {x, broadcast(scales, shape, 1)});
    if (scales < 0 && is_float(dtype)) x = apply(Op::mul, {x, splat(0.25, x)});
    const int64_t low = below(3);
    return chance(50) ? x : add({.op = Op::pad, .operands = {x}, .ints = {low, 0}, .ints2 = {2 - low, 0}});
  }
  void dequantised_product() {
    const DType dtype = chance(70) ? DType::f32 : DType::i32;
    const int64_t k = 1 + below(4);
    const NodeId a = dequantised({1 + below(4), k}, dtype), b = dequantised({k, 1 + below(4)}, dtype);
    const std::string wanted[] = {"mk,kn->mn", "mk,kn->nm", "km,kn->mn", "mk,nk->mn"};
    if (a >= 0 && b >= 0) add({.op = Op::contract, .dtype = dtype, .operands = {a, b}, .text = wanted[below(4)]});
  }

  void requantised() {
    const bool is_signed = chance(50);
    const auto zero = static_cast<double>(below(3)), scale = below(2) ? 0.3 : 3.0;
    const NodeId bytes =
        input(random_shape(), is_signed ? DType::i8 : DType::u8, {.low = is_signed ? -3 : 0, .high = 5});
    NodeId x = add({.op = Op::cast, .dtype = DType::f32, .operands = {bytes}});
    x = apply(Op::mul, {apply(Op::add, {x, splat(-zero, x)}), splat(scale, x)});
    x = apply(Op::round, {apply(Op::div, {x, splat(below(9) ? scale : 2, x)})});
    x = apply(Op::add, {x, splat(below(9) ? zero : 4, x)});
    x = apply(Op::max, {x, splat(is_signed ? -128 : below(9) ? 0 : 1, x)});
    x = apply(Op::min, {x, splat(is_signed ? 127 : 255, x)});
    add({.op = Op::cast, .dtype = node(bytes).dtype, .operands = {x}});
  }

  void any_node() {
    if (chance(8)) return idiom();
    if (!options_.f32_only && chance(2)) return dequantised_product();
    if (!options_.f32_only && chance(1)) return requantised();
    const OpInfo& row = ops()[static_cast<size_t>(below(static_cast<int64_t>(ops().size())))];
    switch (chance(35) ? OpClass::kView : row.cls) {
      case OpClass::kLeaf:
        if (row.op == Op::constant) constant(random_dtype(), random_shape());
        if (row.op == Op::input) input(random_shape(), random_dtype());
        if (row.op == Op::iota) iota();
        break;
      case OpClass::kElementwise:
        elementwise(row);
        break;
      case OpClass::kView:
        view(row.cls == OpClass::kView ? row.op : static_cast<Op>(static_cast<int>(Op::reshape) + below(4)));
        break;
      case OpClass::kReduce:
        reduce(row.op);
        break;
      case OpClass::kContract:
        contract();
        break;
      case OpClass::kGather:
        take_along();
        break;
    }
  }

  void iota() {
    Node result{.op = Op::iota, .dtype = random_dtype(), .shape = random_shape()};
    if (result.shape.empty()) return;
    result.ints = {below(static_cast<int64_t>(result.shape.size()))};
    add(std::move(result));
  }

  void elementwise(const OpInfo& row) {
    Node result{.op = row.op, .dtype = random_dtype()};
    NodeId x = pick();
    const DType dtype = node(x).dtype;
    const Shape shape = node(x).shape;
    for (int i = 0; i < row.arity; ++i) {
      bool condition = row.op == Op::select && i == 0;
      NodeId operand = condition                             ? like(DType::b1, shape)
                       : i == (row.op == Op::select ? 1 : 0) ? x
                                                             : like(dtype, shape);
      if (operand < 0) return;
      result.operands.push_back(operand);
    }
    if (row.arity == 2 && chance(50)) std::swap(result.operands[0], result.operands[1]);
    add(std::move(result));
  }

  void view(Op op) {
    NodeId x = pick();
    const Shape shape = node(x).shape;
    auto rank = static_cast<int64_t>(shape.size());
    Node result{.op = op, .operands = {x}};
    if (op == Op::reshape) {
      result.shape = reshaped(shape);
    } else if (op == Op::transpose) {
      result.ints.resize(shape.size());
      std::iota(result.ints.begin(), result.ints.end(), 0);
      if (chance(85)) std::shuffle(result.ints.begin(), result.ints.end(), random_);
    } else if (op == Op::broadcast) {
      for (int64_t i = 0; i < rank || (result.shape.size() < 4 && chance(50));) {
        if (i < rank && chance(60)) {
          result.ints.push_back(static_cast<int64_t>(result.shape.size()));
          result.shape.push_back(shape[i++]);
        } else if (result.shape.size() < 5) {
          result.shape.push_back(1 + below(3));
        }
      }
    } else if (op == Op::slice) {
      for (int64_t extent : shape) {
        int64_t n = extent == 0 ? 0 : 1 + below(extent), room = n > 1 ? (extent - 1) / (n - 1) : 1;
        int64_t step = 1 + below(std::max<int64_t>(room, 1)), start = extent == 0 ? 0 : below(extent - (n - 1) * step);
        bool backwards = chance(30);
        if (backwards) start += (n - 1) * step;
        if (chance(15)) n = extent, step = 1, start = 0, backwards = false;
        result.ints.push_back(n == 0 ? 0 : start);
        result.ints2.push_back(backwards ? -step : step);
        result.shape.push_back(n);
      }
    } else if (op == Op::pad) {
      bool nothing = chance(10);
      for (int64_t i = 0; i < rank; ++i) {
        result.ints.push_back(nothing ? 0 : below(3));
        result.ints2.push_back(nothing ? 0 : below(3));
      }
      result.value = static_cast<double>(below(3));
    } else if (op == Op::concat) {
      if (rank == 0) return;
      if (chance(50)) return taps(x);
      result.ints = {below(rank)};
      for (int64_t i = below(3); i > 0; --i) {
        NodeId other = like(node(x).dtype, shape);
        if (other >= 0) result.operands.push_back(other);
      }
    } else {
      for (int64_t i = 0; i < rank; ++i) {
        if (!chance(60) || shape[i] == 0) continue;
        result.ints.push_back(i);
        int64_t size = 1 + below(shape[i]);
        for (int64_t p : {size, 1 + below(2), size > 1 ? 1 + below((shape[i] - 1) / (size - 1)) : 1 + below(2)})
          result.ints2.push_back(p);
      }
    }
    add(std::move(result));
  }

  // Merges and splits axes, and adds and removes extents of 1.
  Shape reshaped(const Shape& shape) {
    if (chance(10)) return shape;
    Shape result;
    for (int64_t extent : shape) {
      if (extent == 1 && chance(50)) continue;
      if (chance(15)) result.push_back(1);
      if (!result.empty() && chance(25)) {
        result.back() *= extent;
      } else if (extent == 4 && chance(50)) {
        result.insert(result.end(), {2, 2});
      } else {
        result.push_back(extent);
      }
    }
    if (chance(15)) result.push_back(1);
    return result;
  }

  void reduce(Op op) {
    NodeId x = pick();
    Node result{.op = op, .operands = {x}};
    for (size_t i = 0; i < node(x).shape.size(); ++i) {
      if (chance(50)) result.ints.push_back(static_cast<int64_t>(i));
    }
    add(std::move(result));
  }

  void contract() {
    NodeId a = pick();
    Einsum e;
    Shape b_shape;
    std::vector<char> out;
    for (size_t i = 0; i < node(a).shape.size(); ++i) {
      char letter = static_cast<char>('a' + i);
      e.a += letter;
      if (chance(60)) {
        e.b += letter;
        b_shape.push_back(node(a).shape[i]);
      }
      if (chance(50)) out.push_back(letter);
    }
    for (int64_t i = below(3); i > 0; --i) {
      e.b += static_cast<char>('p' + i);
      b_shape.push_back(1 + below(4));
      if (chance(80)) out.push_back(e.b.back());
    }
    std::shuffle(out.begin(), out.end(), random_);
    NodeId b = like(node(a).dtype, b_shape);
    if (b < 0) return;
    // A contraction of narrow floats may have an f32 result.
    Node result{.op = Op::contract, .dtype = chance(30) ? DType::f32 : node(a).dtype, .operands = {a, b}};
    result.text = e.a + "," + e.b + "->" + std::string(out.begin(), out.end());
    add(std::move(result));
  }

  void take_along() {
    NodeId x = pick();
    Shape shape = node(x).shape;
    if (shape.empty()) return;
    int64_t axis = below(static_cast<int64_t>(shape.size())), extent = shape[axis];
    if (extent == 0) return;
    shape[axis] = 1 + below(4);
    Node place{.op = Op::constant, .dtype = chance(50) ? DType::i64 : DType::i32, .shape = shape};
    if (shape[axis] <= extent) place.op = Op::iota, place.ints = {axis};
    NodeId index = chance(60) ? input(shape, place.dtype, {.low = -extent, .high = extent}) : add(place);
    if (index < 0) return;
    add({.op = Op::take_along, .operands = {x, index}, .ints = {axis}});
  }

  std::mt19937_64 random_;
  const RandomGraphOptions& options_;
  Graph graph_;
};

}  // namespace

Graph random_graph(uint64_t seed, const RandomGraphOptions& options) {
  return Generator(seed, options).graph();
}

}  // namespace wl
