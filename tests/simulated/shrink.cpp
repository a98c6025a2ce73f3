#include "tests/simulated/shrink.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "compiler/domain/axes.h"

namespace wl::testing {
namespace {

// The factors of every axis of every node. with() makes the graph again with other extents of these factors.
class Extents {
 public:
  explicit Extents(const Graph& graph) : graph_(graph) {
    for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) axes_.push_back(axes_of(id));
    std::set<int> leaves;
    for (const Axes& axes : axes_)
      for (const FactorList& axis : axes)
        for (int leaf : factors_.expand(axis)) leaves.insert(leaf);
    for (int leaf : leaves) sizes_[leaf] = factors_.extent(leaf);
  }

  using Sizes = std::map<int, int64_t>;  // extents of the factors, by number of the factor
  const Sizes& sizes() const { return sizes_; }

  // Returns the graph whose factors have the extents `sizes`; nullopt if an op does not allow them. If the extent of
  // an axis is determined by other axes, `sizes` is corrected to that extent.
  std::optional<Graph> with(Sizes& sizes) const {
    for (size_t repairs = 0; repairs <= sizes.size(); ++repairs) {
      int follows = -1;
      int64_t extent = 0;
      std::optional<Graph> graph = build(sizes, follows, extent);
      if (graph || follows < 0) return graph;
      sizes[follows] = extent;
    }
    return std::nullopt;
  }

 private:
  const Node& node(NodeId id) const { return graph_.nodes[id]; }
  Axes own(const Shape& shape) {
    Axes axes;
    for (int64_t extent : shape) axes.push_back(factors_.axis(extent));
    return axes;
  }
  // If the factors of two equal axes do not nest, both axes keep their extents.
  void equate(const FactorList& a, const FactorList& b) {
    if (!factors_.unify(a, b)) rigid_.insert(rigid_.end(), {a, b});
  }

  Axes axes_of(NodeId id) {
    const Node& n = node(id);
    const auto of = [&](size_t k) -> const Axes& { return axes_[n.operands[k]]; };
    Axes axes;
    switch (class_of(n.op)) {
      case OpClass::kLeaf:
        return own(n.shape);
      case OpClass::kElementwise:
        for (size_t k = 1; k < n.operands.size(); ++k)
          for (size_t i = 0; i < n.shape.size(); ++i) equate(of(0)[i], of(k)[i]);
        return of(0);
      case OpClass::kReduce:
        for (size_t i = 0; i < of(0).size(); ++i)
          if (!std::count(n.ints.begin(), n.ints.end(), static_cast<int64_t>(i))) axes.push_back(of(0)[i]);
        return axes;
      case OpClass::kContract: {
        const Einsum einsum = parse_einsum(n.text).value();
        std::map<char, FactorList> letters;
        for (size_t k = 0; k < 2; ++k) {
          const std::string& names = k == 0 ? einsum.a : einsum.b;
          for (size_t i = 0; i < names.size(); ++i) {
            const auto [at, fresh] = letters.emplace(names[i], of(k)[i]);
            if (!fresh) equate(at->second, of(k)[i]);
          }
        }
        for (char letter : einsum.out) axes.push_back(letters.at(letter));
        return axes;
      }
      case OpClass::kGather:
        for (size_t i = 0; i < n.shape.size(); ++i)
          if (static_cast<int64_t>(i) != n.ints[0]) equate(of(0)[i], of(1)[i]);
        return of(1);
      case OpClass::kView:
        return axes_of_view(n);
    }
    return axes;
  }

  Axes axes_of_view(const Node& n) {
    const Axes& x = axes_[n.operands[0]];
    const Shape& from = node(n.operands[0]).shape;
    Axes axes = own(n.shape);
    switch (n.op) {
      case Op::reshape: {
        FactorList before, after;
        for (const FactorList& axis : x) before.insert(before.end(), axis.begin(), axis.end());
        for (const FactorList& axis : axes) after.insert(after.end(), axis.begin(), axis.end());
        equate(before, after);
        return axes;
      }
      case Op::transpose:
        for (size_t i = 0; i < axes.size(); ++i) axes[i] = x[n.ints[i]];
        return axes;
      case Op::broadcast:
        for (size_t i = 0; i < n.ints.size(); ++i) axes[n.ints[i]] = x[i];
        return axes;
      case Op::concat:
        for (size_t k = 0; k < n.operands.size(); ++k)
          for (size_t i = 0; i < axes.size(); ++i)
            if (static_cast<int64_t>(i) != n.ints[0]) equate(axes[i], axes_[n.operands[k]][i]);
        return axes;
      case Op::window:
        for (size_t i = 0; i < x.size(); ++i)
          if (!std::count(n.ints.begin(), n.ints.end(), static_cast<int64_t>(i))) axes[i] = x[i];
        // The taps of a window keep their extents.
        for (size_t i = x.size(); i < axes.size(); ++i) rigid_.push_back(axes[i]);
        return axes;
      default:  // slices and pads: an axis that they do not change keeps its factors
        for (size_t i = 0; i < axes.size(); ++i) {
          const bool whole = n.shape[i] == from[i] && n.ints[i] == 0 && n.ints2[i] == (n.op == Op::slice ? 1 : 0);
          if (whole) axes[i] = x[i];
        }
        return axes;
    }
  }

  int64_t extent(const FactorList& axis, const Sizes& sizes) const {
    int64_t product = 1;
    for (int leaf : factors_.expand(axis)) product *= sizes.at(leaf);
    return product;
  }

  std::optional<Graph> build(const Sizes& sizes, int& follows, int64_t& wanted) const {
    for (const FactorList& axis : rigid_)
      if (extent(axis, sizes) != extent(axis, sizes_)) return std::nullopt;
    Graph out;
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
      Node n = node(id);
      Shape shape;
      for (const FactorList& axis : axes_[id]) shape.push_back(extent(axis, sizes));
      const std::string text = n.text;
      if (n.op == Op::slice) place_slice(n, node(n.operands[0]).shape, shape, out.nodes[n.operands[0]].shape);
      if (n.op == Op::input && !n.fill.literal.empty()) n.fill.literal = part_of(n.fill.literal, elements(shape));
      n.shape = shape;
      const absl::Status status = infer(out.nodes, n);
      if (!status.ok()) return std::nullopt;
      if (n.shape != shape) {
        for (size_t i = 0; i < shape.size(); ++i) {
          const FactorList leaves = factors_.expand(axes_[id][i]);
          if (n.shape[i] == shape[i] || leaves.size() != 1) continue;
          follows = leaves[0];
          wanted = n.shape[i];
          return std::nullopt;
        }
        return std::nullopt;
      }
      out.nodes.push_back(std::move(n));
    }
    out.outputs = graph_.outputs;
    for (const Node& n : out.nodes)
      if (class_of(n.op) == OpClass::kGather)
        bound_indices(out, n.operands[1], out.nodes[n.operands[0]].shape[n.ints[0]]);
    if (!verify(out).ok()) return std::nullopt;
    return out;
  }

  // Sets the start of a slice of new extents `shape`. The old start is a multiple of the old extent plus a remainder;
  // the new start is the same multiple of the new extent plus that remainder, limited to the operand's extents `to`.
  static void place_slice(Node& slice, const Shape& from, const Shape& shape, const Shape& to) {
    for (size_t i = 0; i < shape.size(); ++i) {
      if (slice.shape[i] == shape[i] && from[i] == to[i]) continue;
      const int64_t step = slice.ints2[i], extent = std::max<int64_t>(1, slice.shape[i]);
      int64_t& start = slice.ints[i];
      const int64_t reach = std::abs(step) * (shape[i] - 1), most = to[i] - 1 - (step > 0 ? reach : 0);
      start = start / extent * shape[i] + std::min(start % extent, shape[i] - 1);
      start = std::clamp(start, step > 0 ? 0 : reach, std::max(most, step > 0 ? 0 : reach));
    }
  }

  static std::vector<double> part_of(const std::vector<double>& values, int64_t n) {
    std::vector<double> part;
    for (int64_t i = 0; i < n; ++i) part.push_back(values[static_cast<size_t>(i) % values.size()]);
    return part;
  }

  static void bound_indices(Graph& graph, NodeId id, int64_t extent) {
    Node& n = graph.nodes[id];
    for (NodeId operand : n.operands) bound_indices(graph, operand, extent);
    if (n.op != Op::input || is_float(n.dtype) || n.dtype == DType::b1) return;
    for (double& value : n.fill.literal) value = std::clamp(value, static_cast<double>(-extent), extent - 1.0);
    if (!n.fill.literal.empty()) return;
    n.fill.low = std::max(n.fill.low, n.fill.low < 0 ? -extent : 0);
    n.fill.high = std::min(n.fill.high, extent);
    if (n.fill.low >= n.fill.high) n.fill.low = 0;
  }

  const Graph& graph_;
  Factors factors_;
  std::vector<Axes> axes_;
  std::vector<FactorList> rigid_;
  Sizes sizes_;
};

// Returns the extents to try, smallest first: 1, 3, 5, 9 and 17 times each power of two that divides the extent, and
// the extent halved again and again.
std::vector<int64_t> smaller(int64_t extent) {
  const int64_t even = extent & -extent;
  std::set<int64_t> out;
  for (int64_t power = 1; power <= even; power *= 2)
    for (int64_t odd : {1, 3, 5, 9, 17}) out.insert(power * odd);
  for (int64_t half = extent / 2; half > 1; half /= 2) out.insert(half);
  out.erase(1);
  out.erase(out.lower_bound(extent), out.end());
  return {out.begin(), out.end()};
}

}  // namespace

Graph shrink(const Graph& graph, const std::function<bool(const Graph&)>& same) {
  const Extents extents(graph);
  Extents::Sizes sizes = extents.sizes();
  Graph best = graph;
  // Gives all of `factors` the smallest of `values` that is accepted.
  const auto try_values = [&](const std::vector<int>& factors, const std::vector<int64_t>& values) {
    for (int64_t value : values) {
      Extents::Sizes fewer = sizes;
      for (int factor : factors) fewer[factor] = value;
      std::optional<Graph> smaller_graph = extents.with(fewer);
      if (!smaller_graph || fewer == sizes || !same(*smaller_graph)) continue;
      sizes = std::move(fewer);
      best = *std::move(smaller_graph);
      return true;
    }
    return false;
  };
  for (bool changed = true; changed;) {
    changed = false;
    // Equal extents are first shrunk together, as the parts of a split must be, then one by one.
    std::map<int64_t, std::vector<int>, std::greater<>> equal;
    for (const auto& [factor, size] : sizes) equal[size].push_back(factor);
    for (const auto& [size, factors] : equal) {
      if (size <= 2) continue;
      changed = try_values(factors, smaller(size)) || changed;
      if (factors.size() == 1) continue;
      for (int factor : factors)
        if (sizes.at(factor) > 2) changed = try_values({factor}, smaller(sizes.at(factor))) || changed;
    }
  }
  return best;
}

}  // namespace wl::testing
