#include "compiler/ir/rules.h"

#include "compiler/ir/rules_internal.h"

namespace wl {
namespace {

constexpr Rule kRules[] = {
    {"add-zero", "x + 0, x - 0 -> x", rule::add_zero},
    {"mul-one", "x * 1, x / 1 -> x", rule::mul_one},
    {"integer-mul-zero", "x * 0 -> 0 for integers (a float may be NaN)", rule::integer_mul_zero},
    {"double-neg", "-(-x) -> x", rule::double_neg},
    {"cast-same", "cast to the dtype it has -> x", rule::cast_same},
    {"fold-constants", "elementwise of constants -> constant", rule::fold_constants},
    {"view-constant", "view or take_along of a constant -> constant", rule::view_constant},
    {"identity-view", "view that moves nothing -> x", rule::identity_view},
    {"reshape-reshape", "reshape of reshape -> reshape", rule::reshape_reshape},
    {"transpose-transpose", "transpose of transpose -> transpose", rule::transpose_transpose},
    {"broadcast-broadcast", "broadcast of broadcast -> broadcast", rule::broadcast_broadcast},
    {"slice-slice", "slice of slice -> slice", rule::slice_slice},
    {"transpose-units", "transpose that moves extents of 1 only -> reshape", rule::transpose_units},
    {"reshape-broadcast", "reshape of broadcast -> broadcast of a smaller reshape", rule::reshape_broadcast},
    {"broadcast-reshape", "broadcast of a reshape that adds extents of 1 -> broadcast", rule::broadcast_reshape},
    {"pow-small", "pow(x, 1 | 2 | 3 | 0.5) -> x | x * x | x * x * x | sqrt(x)", rule::pow_small},
    {"div-power-of-two", "x / 2^k -> x * 2^-k", rule::div_power_of_two},
    {"one-over", "1 / x -> rcp(x)", rule::one_over},
    {"rcp-sqrt", "rcp(sqrt(x)) -> rsqrt(x)", rule::rcp_sqrt},
    {"hoist-broadcast", "f(broadcast a, broadcast b) -> broadcast f(a, b)", rule::hoist_broadcast},
    {"take-elementwise", "take_along of f(a, b) -> f(take_along a, take_along b), when that takes fewer elements",
     rule::take_elementwise},
    {"take-broadcast", "take_along over a repeated axis -> broadcast", rule::take_broadcast},
};

// Every rule lowers a measure (rules.h), so this is never reached; were it, the graph so far would still be right.
constexpr int kMaxRounds = 1000;

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

absl::StatusOr<Graph> simplify(const Graph& graph, const std::set<std::string, std::less<>>& disabled,
                               std::set<std::string, std::less<>>* fired) {
  std::vector<const Rule*> enabled;
  for (const Rule& rule : kRules) {
    if (!disabled.contains(rule.name)) enabled.push_back(&rule);
  }
  Graph current = graph;
  for (int round = 0; round < kMaxRounds; ++round) {
    Builder to;
    std::vector<NodeId> renamed;
    renamed.reserve(current.nodes.size());
    bool changed = false;
    for (const Node& old : current.nodes) {
      Node node = old;
      for (NodeId& operand : node.operands) operand = renamed[operand];
      std::optional<NodeId> replacement;
      for (const Rule* rule : enabled) {
        if (!(replacement = rule->apply(to, node))) continue;
        changed = true;
        if (fired != nullptr) fired->emplace(rule->name);
        break;
      }
      renamed.push_back(replacement ? *replacement : to.add_node(std::move(node)));
    }
    for (const Output& output : current.outputs) to.output(output.name, renamed[output.node]);
    WL_ASSIGN_OR_RETURN(current, to.finish());
    if (!changed) return current;
  }
  return current;
}

}  // namespace wl
