#include "compiler/ir/ranges.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

namespace wl {
namespace {

constexpr int kMostNodes = 256;  // the most nodes whose ranges one call of range_of() derives
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Range whole_range(DType dtype) {
  if (is_float(dtype)) return {-kInfinity, kInfinity};
  return {round_to(dtype, -kInfinity), round_to(dtype, kInfinity)};
}

Range join(const Range& a, const Range& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

// Returns the smallest range that contains f(x, y) for both ends x of `a` and both ends y of `b`. If one of these
// results is NaN, the range is infinite.
template <typename F>
Range of_corners(const Range& a, const Range& b, F f) {
  Range result{kInfinity, -kInfinity};
  for (const double x : {a.low, a.high}) {
    for (const double y : {b.low, b.high}) {
      const double value = f(x, y);
      if (std::isnan(value)) return {-kInfinity, kInfinity};
      result = join(result, {value, value});
    }
  }
  return result;
}

class Ranges {
 public:
  explicit Ranges(const NodeLookup& node) : node_(node) {}

  Range of(NodeId id) {
    if (const auto known = known_.find(id); known != known_.end()) return known->second;
    const Node& at = node_(id);
    const Range whole = whole_range(at.dtype);
    if (++looked_at_ > kMostNodes || elements(at.shape) == 0) return whole;
    const Range found = computed(at).value_or(whole);
    // An integer result that does not fit into the dtype wraps around, so its range is then the whole range of the
    // dtype.
    return known_[id] = !found.empty() && found.within(whole) ? found : whole;
  }

 private:
  std::optional<Range> computed(const Node& at) {
    switch (class_of(at.op)) {
      case OpClass::kLeaf:
        if (at.op == Op::constant)
          return std::isnan(at.value) ? std::nullopt : std::optional(Range{at.value, at.value});
        if (at.op == Op::iota) return Range{0, static_cast<double>(at.shape[at.ints[0]] - 1)};
        return std::nullopt;
      case OpClass::kView:
        return of_view(at);
      case OpClass::kReduce:
        return of_reduction(at);
      case OpClass::kGather:
        return of(at.operands[0]);
      case OpClass::kElementwise:
        return of_elementwise(at);
      case OpClass::kContract:
        return std::nullopt;
    }
    return std::nullopt;
  }

  std::optional<Range> of_view(const Node& at) {
    Range result = of(at.operands[0]);
    for (const NodeId operand : at.operands) result = join(result, of(operand));
    if (at.op == Op::pad) result = join(result, {at.value, at.value});
    return std::isnan(at.value) ? std::nullopt : std::optional(result);
  }

  std::optional<Range> of_reduction(const Node& at) {
    const int64_t all = elements(node_(at.operands[0]).shape);
    if (all == 0) return std::nullopt;
    const Range x = of(at.operands[0]);
    if (at.op == Op::reduce_max || at.op == Op::reduce_min) return x;
    if (at.op != Op::reduce_sum) return std::nullopt;
    if (is_float(at.dtype)) return not_negative(x.low >= 0);
    const auto terms = static_cast<double>(all / elements(at.shape));
    return Range{x.low * terms, x.high * terms};
  }

  std::optional<Range> of_elementwise(const Node& at) {
    std::array<Range, 3> x{};
    for (size_t i = 0; i < at.operands.size(); ++i) x[i] = of(at.operands[i]);
    const bool floats = is_float(at.dtype);
    switch (at.op) {
      case Op::add:
        if (floats) return not_negative(x[0].low >= 0 && x[1].low >= 0);
        return Range{x[0].low + x[1].low, x[0].high + x[1].high};
      case Op::sub:
        return floats ? std::nullopt : std::optional(Range{x[0].low - x[1].high, x[0].high - x[1].low});
      case Op::mul:
        if (floats) return not_negative(at.operands[0] == at.operands[1] || (x[0].low >= 0 && x[1].low >= 0));
        return of_corners(x[0], x[1], [](double a, double b) { return a * b; });
      case Op::div:
        if (floats) return not_negative(x[0].low >= 0 && x[1].low > 0);  // of a zero as divisor the sign is not known
        if (x[1].low <= 0) return std::nullopt;
        return of_corners(x[0], x[1], [](double a, double b) { return std::trunc(a / b); });
      case Op::mod:
        if (floats || x[1].low <= 0) return std::nullopt;
        return Range{0, x[0].low >= 0 ? std::min(x[0].high, x[1].high - 1) : x[1].high - 1};
      case Op::abs:
      case Op::exp:
      case Op::sqrt:
      case Op::sigmoid:
        return not_negative(floats);
      case Op::neg:
        return Range{-x[0].high, -x[0].low};
      case Op::min:
        return Range{std::min(x[0].low, x[1].low), std::min(x[0].high, x[1].high)};
      case Op::max:
        return Range{std::max(x[0].low, x[1].low), std::max(x[0].high, x[1].high)};
      case Op::floor:
        return Range{std::floor(x[0].low), std::floor(x[0].high)};
      case Op::ceil:
        return Range{std::ceil(x[0].low), std::ceil(x[0].high)};
      case Op::round:
        return Range{std::nearbyint(x[0].low), std::nearbyint(x[0].high)};
      case Op::select:
        return join(x[1], x[2]);
      case Op::cast:
        return of_cast(node_(at.operands[0]).dtype, at.dtype, x[0]);
      default:
        return info(at.op).result == ResultType::kBool ? std::optional(Range{0, 1}) : std::nullopt;
    }
  }

  // The range of a float that is known not to be negative, if it is known.
  static std::optional<Range> not_negative(bool known) {
    return known ? std::optional(Range{0, kInfinity}) : std::nullopt;
  }

  // Returns the range of a cast. A float becomes an integer by truncation, and NaN becomes 0.
  static std::optional<Range> of_cast(DType from, DType to, const Range& x) {
    if (is_float(to)) return not_negative(x.low >= 0);
    if (to == DType::b1) return Range{0, 1};
    if (!is_float(from)) return x;
    return join({round_to(to, x.low), round_to(to, x.high)}, {0, 0});
  }

  const NodeLookup& node_;
  std::map<NodeId, Range> known_;
  int looked_at_ = 0;
};

// Finds ranges for the inputs from which indices are computed, so that the indices stay inside their axes, and sets the
// fills of these inputs. The walk goes from each take_along back to the inputs and keeps, for every node, the range in
// which its values should lie (wanted_).
class Wishes {
 public:
  explicit Wishes(Graph& graph)
      : graph_(graph),
        wanted_(graph.nodes.size(), {-kInfinity, kInfinity}),
        follows_(graph.nodes.size(), false),
        lookup_([&graph](NodeId id) -> const Node& { return graph.nodes[static_cast<size_t>(id)]; }) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& at = graph.nodes[i];
      follows_[i] = at.op == Op::input ? !is_float(at.dtype) && at.fill == Fill{}
                                       : std::any_of(at.operands.begin(), at.operands.end(),
                                                     [this](NodeId operand) { return follows_[operand]; });
    }
  }

  void run() {
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      Node& at = graph_.nodes[i];
      const Range wanted = wanted_[i];
      if (at.op == Op::take_along) {
        want(at.operands[1], {0, static_cast<double>(graph_.nodes[at.operands[0]].shape[at.ints[0]] - 1)});
        if (is_known(wanted)) want(at.operands[0], wanted);
      } else if (at.op == Op::input) {
        if (is_known(wanted)) draw(at, wanted);
      } else if (is_known(wanted) && !is_float(at.dtype)) {
        pass_on(at, wanted);
      }
    }
  }

 private:
  static bool is_known(const Range& range) { return range.low > -kInfinity || range.high < kInfinity; }

  // Narrows the range that is wanted for a node to `range`. If the two ranges have no number in common, `range` is
  // ignored.
  void want(NodeId id, Range range) {
    if (is_float(lookup_(id).dtype) || lookup_(id).dtype == DType::b1) return;
    range = {std::ceil(range.low), std::floor(range.high)};
    Range& known = wanted_[static_cast<size_t>(id)];
    const Range both{std::max(known.low, range.low), std::min(known.high, range.high)};
    const Range whole = whole_range(lookup_(id).dtype);
    if (both.empty() || both.high < whole.low || both.low > whole.high) return;
    known = both;
  }

  void pass_on(const Node& at, const Range& wanted) {
    switch (at.op) {
      case Op::add:
      case Op::sub:
      case Op::mul:
      case Op::div:
        return pass_on_arithmetic(at, wanted);
      case Op::neg:
        return want(at.operands[0], {-wanted.high, -wanted.low});
      case Op::select:
        want(at.operands[2], wanted);
        return want(at.operands[1], wanted);
      case Op::min:
      case Op::max:
      case Op::cast:
        break;
      default:
        if (class_of(at.op) == OpClass::kElementwise || class_of(at.op) == OpClass::kContract) return;
    }
    for (const NodeId operand : at.operands) want(operand, wanted);
  }

  void pass_on_arithmetic(const Node& at, const Range& wanted) {
    const NodeId x = at.operands[0], y = at.operands[1];
    std::array<std::optional<Range>, 2> known;
    for (size_t i = 0; i < 2; ++i) {
      const Range range = range_of(lookup_, at.operands[i]), whole = whole_range(at.dtype);
      if (!follows_[at.operands[i]] && range.low > whole.low && range.high < whole.high) known[i] = range;
    }
    // If neither operand has a known range, each operand gets about half of the range that is wanted for the result.
    if (!known[0] && !known[1] && (at.op == Op::add || at.op == Op::sub)) {
      const double half = std::floor(wanted.high / 2);
      want(x, {at.op == Op::add ? wanted.low : half, at.op == Op::add ? half : wanted.high});
      return want(y, {0, half});
    }
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const NodeId operand = at.operands[i];
      const std::optional<Range>& other = known[1 - i];
      if (known[i] || !other) continue;
      if (at.op == Op::add) want(operand, {wanted.low - other->low, wanted.high - other->high});
      if (at.op == Op::sub && i == 0) want(operand, {wanted.low + other->high, wanted.high + other->low});
      if (at.op == Op::sub && i == 1) want(operand, {other->high - wanted.high, other->low - wanted.low});
      if (at.op == Op::mul && other->high > 0) want(operand, {wanted.low / other->high, wanted.high / other->high});
      if (at.op == Op::div && i == 0 && other->low > 0)
        want(operand, {wanted.low * other->high, wanted.high * other->low + other->low - 1});
    }
  }

  static void draw(Node& input, const Range& wanted) {
    const Fill unchanged;
    if (input.fill != unchanged) return;
    constexpr double kFar = 0x1p40;
    const Range whole = whole_range(input.dtype);
    input.fill.low = static_cast<int64_t>(std::max({wanted.low, whole.low, -kFar}));
    input.fill.high = static_cast<int64_t>(std::min({wanted.high, whole.high, kFar})) + 1;
  }

  Graph& graph_;
  std::vector<Range> wanted_;
  std::vector<bool> follows_;  // for each node: whether it depends on an integer input with the default fill
  NodeLookup lookup_;
};

// Gives the whole range of its dtype to every integer input from which neither an index nor a float is computed. The
// search stops at values of b1, since a comparison gives 0 or 1 for any integers.
void draw_whole_ranges(Graph& graph) {
  std::vector<bool> narrow(graph.nodes.size(), false);  // for each node: whether an index or a float depends on it
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    Node& at = graph.nodes[i];
    if (at.op == Op::input && !narrow[i] && !is_float(at.dtype) && at.dtype != DType::b1 && at.fill == Fill{}) {
      const WholeRange whole = whole_fill(at.dtype);
      at.fill.low = whole.low;
      at.fill.high = whole.high;
    }
    const bool passes = (narrow[i] || is_float(at.dtype)) && at.dtype != DType::b1;
    for (size_t k = 0; k < at.operands.size(); ++k)
      if (passes || (at.op == Op::take_along && k == 1)) narrow[static_cast<size_t>(at.operands[k])] = true;
  }
}

}  // namespace

Range range_of(const NodeLookup& node, NodeId id) {
  return Ranges(node).of(id);
}

bool takes_inside(const NodeLookup& node, const Node& take) {
  const auto extent = static_cast<double>(node(take.operands[0]).shape[static_cast<size_t>(take.ints[0])]);
  return range_of(node, take.operands[1]).within({-extent, extent - 1});
}

void draw_integers(Graph& graph) {
  const bool takes =
      std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) { return node.op == Op::take_along; });
  if (takes) Wishes(graph).run();
  draw_whole_ranges(graph);
}

}  // namespace wl
