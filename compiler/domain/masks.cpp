#include "compiler/domain/masks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "compiler/ir/ops.h"

namespace wl {
namespace {

// How an integer comparison is written as a linear condition: `x op y` is true if and only if sign * (x - y) >= more.
struct Comparison {
  Op op;
  int64_t sign, more;
};
constexpr Comparison kComparisons[] = {{Op::ge, 1, 0}, {Op::gt, 1, 1}, {Op::le, -1, 0}, {Op::lt, -1, 1}};

// An op whose result is `value` whenever one of its operands is `value`, whatever the other operand is.
struct Absorbing {
  Op op;
  double value;
};
constexpr Absorbing kAbsorbing[] = {{Op::mul, 0}, {Op::logical_and, 0}, {Op::logical_or, 1}};

// The largest integer that is analysed, so small that 64 bits hold the product of two such integers.
constexpr double kLargest = 1 << 30;
constexpr size_t kMostFacts = 4;  // the most facts that are kept about one value

// What is known about one value (a tensor of the group): its elements outside of the region equal the number `value`.
struct Fact {
  double value = 0;
  Region region;
};
using Facts = std::vector<Fact>;  // the facts about one value; each of them has another number `value`

class Masks {
 public:
  Masks(const Graph& graph, const Domain& domain) : graph_(graph), domain_(domain) {}

  Region counted() {
    const NodeId product = domain_.contract;
    Region region = both(is_not(product, 0, 0), is_not(product, 1, 0)), used = nowhere();
    for (const Domain::Store& store : domain_.stores)
      used = either(used, store.source >= 0 && store.pieces.empty() ? used_in(store.source) : Region());
    region = both(std::move(region), used);
    std::erase_if(region, [&](const Condition& condition) { return least(condition, domain_) >= 0; });
    return region;
  }

 private:
  Condition constant(int64_t value) const { return {value, std::vector<int64_t>(domain_.atoms.size(), 0)}; }
  Region nowhere() const { return {constant(-1)}; }
  bool is_nowhere(const Region& region) const {
    return std::ranges::any_of(region, [&](const Condition& c) { return greatest(c, domain_) < 0; });
  }

  static Region both(Region a, const Region& b) {
    for (const Condition& condition : b) {
      const auto same = std::ranges::find(a, condition.strides, &Condition::strides);
      if (same == a.end())
        a.push_back(condition);
      else
        same->base = std::min(same->base, condition.base);
    }
    return a;
  }

  // Returns a region that contains both regions and possibly more. Of two conditions that differ by a constant, one
  // from each region, the weaker one is kept. A condition without a counterpart in the other region is dropped.
  Region either(const Region& a, const Region& b) const {
    if (is_nowhere(a)) return b;
    if (is_nowhere(b)) return a;
    Region out;
    for (const Condition& condition : a)
      if (const auto same = std::ranges::find(b, condition.strides, &Condition::strides); same != b.end())
        out.push_back({std::max(condition.base, same->base), condition.strides});
    return out;
  }

  // Returns the computed node, constant or iota that an operand is a view of; -1 if it is an input, padded or joined.
  NodeId source(NodeId id, size_t k) const {
    const Domain::Operand& operand = domain_.operands[id][k];
    return operand.pieces.empty() ? operand.source : -1;
  }
  bool is_elementwise(NodeId id) const {
    return class_of(graph_.nodes[id].op) == OpClass::kElementwise && !domain_.operands[id].empty();
  }

  // places() writes an integer value (a coordinate, or arithmetic on coordinates) as base + sum of stride * atom. It
  // returns nullopt if the value is not of this form, or if its dtype may not hold the value exactly, which exact()
  // checks.
  std::optional<Condition> exact(DType dtype, Condition sum) const {
    const auto low = static_cast<double>(least(sum, domain_)), high = static_cast<double>(greatest(sum, domain_));
    const double most = is_float(dtype) ? std::min(kLargest, 1 / info(dtype).unit_roundoff) : kLargest;
    const bool fits = dtype != DType::b1 && std::max(-low, high) <= most && round_to(dtype, low) == low &&
                      round_to(dtype, high) == high;
    return fits ? std::optional(std::move(sum)) : std::nullopt;
  }
  std::optional<Condition> places(NodeId id, size_t k) {
    const NodeId from = source(id, k);
    if (from < 0) return std::nullopt;
    const Node& node = graph_.nodes[from];
    const Access& access = domain_.operands[id][k].access;
    if (node.op == Op::iota) return exact(node.dtype, {access.offset, access.strides});
    const auto [known, is_new] = places_.try_emplace(from, std::nullopt);
    if (!is_new) return known->second;
    const std::optional<Condition> found = places_of(from);
    return places_[from] = found;
  }
  std::optional<Condition> places_of(NodeId id) {
    const Node& node = graph_.nodes[id];
    if (node.op == Op::constant) {
      if (std::fabs(node.value) > kLargest || std::trunc(node.value) != node.value) return std::nullopt;
      return constant(static_cast<int64_t>(node.value));
    }
    if (!is_elementwise(id)) return std::nullopt;
    const auto x = places(id, 0);
    if (!x || node.op == Op::cast) return x ? exact(node.dtype, *x) : std::nullopt;
    if (node.op == Op::neg) return exact(node.dtype, sum(constant(0), *x, -1));
    if (node.operands.size() != 2) return std::nullopt;
    const auto y = places(id, 1);
    if (!y) return std::nullopt;
    if (node.op == Op::add || node.op == Op::sub) return exact(node.dtype, sum(*x, *y, node.op == Op::add ? 1 : -1));
    if (node.op != Op::mul) return std::nullopt;
    for (const auto& [factor, other] : {std::pair(*x, *y), std::pair(*y, *x)})
      if (factor == constant(factor.base)) return exact(node.dtype, sum(constant(0), other, factor.base));
    return std::nullopt;
  }
  static Condition sum(Condition a, const Condition& b, int64_t factor) {
    a.base += b.base * factor;
    for (size_t atom = 0; atom < a.strides.size(); ++atom) a.strides[atom] += b.strides[atom] * factor;
    return a;
  }

  // facts() returns what is known about an operand. is_not() returns a region outside of which the operand equals the
  // number `value`.
  Facts facts(NodeId id, size_t k) {
    const NodeId from = source(id, k);
    if (from < 0) return {};
    const auto [known, is_new] = facts_.try_emplace(from);
    if (!is_new) return known->second;
    Facts found;
    if (graph_.nodes[from].op == Op::constant) found = {{graph_.nodes[from].value, nowhere()}};
    if (is_elementwise(from)) found = facts_of(from);
    return facts_[from] = found;
  }
  Region is_not(NodeId id, size_t k, double value) {
    for (const Fact& fact : facts(id, k))
      if (fact.value == value) return fact.region;
    return {};
  }

  static void add(Facts& facts, double value, const Region& region) {
    if (region.empty() || std::isnan(value)) return;
    const auto same = std::ranges::find(facts, value, &Fact::value);
    if (same != facts.end())
      same->region = both(std::move(same->region), region);
    else if (facts.size() < kMostFacts)
      facts.push_back({value, region});
  }

  Facts facts_of(NodeId id) {
    const Node& node = graph_.nodes[id];
    Facts out;
    if (node.op == Op::select) {
      const Facts first = facts(id, 1), second = facts(id, 2);
      const Region holds = is_not(id, 0, 0), fails = is_not(id, 0, 1);
      for (const Fact& fact : first) add(out, fact.value, either(fails, fact.region));
      for (const Fact& fact : second) add(out, fact.value, either(holds, fact.region));
      for (const Fact& a : first)
        for (const Fact& b : second)
          if (a.value == b.value) add(out, a.value, either(a.region, b.region));
      return out;
    }
    compare(id, out);
    for (const Absorbing& row : kAbsorbing)
      for (size_t k = 0; k < node.operands.size() && row.op == node.op; ++k)
        add(out, row.value, is_not(id, k, row.value));
    double operands[3] = {};
    combine(id, 0, operands, nowhere(), out);
    return out;
  }

  // Adds the facts that follow from a comparison of two integers, if places() can write both of them.
  void compare(NodeId id, Facts& out) {
    const Op op = graph_.nodes[id].op;
    const bool equal = op == Op::eq || op == Op::ne;
    if (!equal && std::ranges::find(kComparisons, op, &Comparison::op) == std::end(kComparisons)) return;
    const auto x = places(id, 0), y = places(id, 1);
    if (!x || !y) return;
    const Condition difference = sum(*x, *y, -1);
    Region holds, fails;
    for (const Comparison& row : kComparisons) {
      if (equal ? row.more != 0 : row.op != op) continue;
      holds.push_back(sum(constant(-row.more), difference, row.sign));
      if (!equal) fails.push_back(sum(constant(row.more - 1), difference, -row.sign));
    }
    add(out, op == Op::ne ? 1 : 0, holds);
    add(out, 1, fails);
  }

  // Adds to `out` what follows about the result of op `id` from each combination of facts about its operands; the
  // operands before number k are already known. Outside of all regions of a combination, the operands are known
  // numbers, and so is the result.
  void combine(NodeId id, size_t k, double (&operands)[3], const Region& region, Facts& out) {
    const Node& node = graph_.nodes[id];
    if (k == node.operands.size()) {
      const double value = info(node.op).value(operands[0], operands[1], operands[2]);
      const DType from = graph_.nodes[node.operands[0]].dtype;
      return add(out, is_float(node.dtype) ? round_to(node.dtype, value) : to_integer(node.dtype, from, value), region);
    }
    for (const Fact& fact : facts(id, k)) {
      operands[k] = fact.value;
      combine(id, k + 1, operands, either(region, fact.region), out);
    }
  }

  // Returns a region outside of which the contraction's result does not influence the value of `id`.
  Region used_in(NodeId id) {
    if (id == domain_.contract) return {};
    const auto [known, is_new] = used_.try_emplace(id, nowhere());
    if (!is_new) return known->second;
    const Node& node = graph_.nodes[id];
    Region out = nowhere();
    for (size_t k = 0; k < domain_.operands[id].size(); ++k) {
      const NodeId from = source(id, k);
      if (from < 0) continue;
      Region mine = used_in(from);
      if (is_nowhere(mine)) continue;
      if (node.op == Op::select && k > 0) mine = both(std::move(mine), is_not(id, 0, k == 1 ? 0 : 1));
      for (const Absorbing& row : kAbsorbing)
        if (row.op == node.op) mine = both(std::move(mine), is_not(id, 1 - k, row.value));
      out = either(out, mine);
    }
    return used_[id] = out;
  }

  const Graph& graph_;
  const Domain& domain_;
  std::map<NodeId, std::optional<Condition>> places_;
  std::map<NodeId, Facts> facts_;
  std::map<NodeId, Region> used_;
};

int64_t furthest(const Condition& condition, const Domain& domain, bool up) {
  int64_t value = condition.base;
  for (size_t atom = 0; atom < condition.strides.size(); ++atom)
    if ((condition.strides[atom] > 0) == up) value += condition.strides[atom] * (domain.atoms[atom].extent - 1);
  return value;
}

}  // namespace

int64_t least(const Condition& condition, const Domain& domain) {
  return furthest(condition, domain, false);
}

int64_t greatest(const Condition& condition, const Domain& domain) {
  return furthest(condition, domain, true);
}

Region counted_products(const Graph& group, const Domain& domain) {
  const bool empty = std::ranges::any_of(domain.atoms, [](const Atom& atom) { return atom.extent == 0; });
  return domain.contract < 0 || empty ? Region() : Masks(group, domain).counted();
}

double share_of(const Region& region, const Domain& domain) {
  constexpr double kPoints = 1 << 15;
  constexpr size_t kMostLoops = 12;
  std::vector<AtomId> atoms;
  for (AtomId atom = 0; atom < static_cast<AtomId>(domain.atoms.size()); ++atom)
    if (std::ranges::any_of(region, [&](const Condition& c) { return c.strides[atom] != 0; })) atoms.push_back(atom);
  if (atoms.size() > kMostLoops) return 1;
  const double each = std::floor(std::pow(kPoints, 1 / std::max<double>(1, static_cast<double>(atoms.size()))));
  int64_t all = 1, inside = 0;
  std::vector<int64_t> points;
  for (AtomId atom : atoms) {
    points.push_back(std::min(domain.atoms[atom].extent, std::max<int64_t>(2, static_cast<int64_t>(each))));
    all *= points.back();
  }
  for (int64_t flat = 0; flat < all; ++flat) {
    std::vector<int64_t> values;
    for (const Condition& condition : region) values.push_back(condition.base);
    int64_t rest = flat;
    for (size_t i = 0; i < atoms.size(); ++i) {
      const int64_t at = (2 * (rest % points[i]) + 1) * domain.atoms[atoms[i]].extent / (2 * points[i]);
      for (size_t c = 0; c < region.size(); ++c) values[c] += region[c].strides[atoms[i]] * at;
      rest /= points[i];
    }
    inside += std::ranges::all_of(values, [](int64_t value) { return value >= 0; });
  }
  return static_cast<double>(inside) / static_cast<double>(all);
}

}  // namespace wl
