#include "compiler/ir/rules/rules.h"

#include <unordered_map>

#include "compiler/ir/rules/internal.h"

namespace wl {
namespace {

constexpr Rule kRules[] = {
    {"commute", "operands of a commutative op in order of age, constants last", rule::commute},
    {"add-zero", "x + 0, x - 0 -> x", rule::add_zero},
    {"mul-one", "x * 1, x / 1 -> x", rule::mul_one},
    {"integer-mul-zero", "x * 0 -> 0 for integers (a float may be NaN)", rule::integer_mul_zero},
    {"double-neg", "-(-x) -> x", rule::double_neg},
    {"cast-same", "cast to the dtype it has -> x", rule::cast_same},
    {"fold-constants", "elementwise of constants -> constant", rule::fold_constants},
    {"view-constant", "view of a constant -> constant", rule::view_constant},
    {"identity-view", "view that moves nothing -> x", rule::identity_view},
    {"reshape-reshape", "reshape of reshape -> reshape", rule::reshape_reshape},
    {"transpose-transpose", "transpose of transpose -> transpose", rule::transpose_transpose},
    {"broadcast-broadcast", "broadcast of broadcast -> broadcast", rule::broadcast_broadcast},
    {"slice-slice", "slice of slice -> slice", rule::slice_slice},
    {"concat-window", "concat of slices at regular distances -> window", rule::concat_window},
    {"elementwise-units", "f(a, b) on shapes with extents of 1 -> the same without them, reshaped",
     rule::elementwise_units},
    {"reduce-units", "reduce of extents of 1 -> without them", rule::reduce_units},
    {"broadcast-units", "broadcast to extents of 1 -> without them", rule::broadcast_units},
    {"transpose-units", "transpose of extents of 1 -> without them", rule::transpose_units},
    {"slice-units", "slice or pad of a tensor with extents of 1 -> without them", rule::slice_units},
    {"concat-units", "concat or take_along of tensors with extents of 1 -> without them", rule::concat_units},
    {"contract-units", "contract over extents of 1 -> without them", rule::contract_units},
    {"hoist-view", "f(view a, view b) -> view f(a, b), for reshapes and transposes that are alike", rule::hoist_view},
    {"reduce-transpose", "reduce of transpose -> transpose of reduce", rule::reduce_transpose},
    {"contract-transpose", "contract of transposed input -> contract with other letters", rule::contract_transpose},
    {"contract-order", "contract of computed values with axes in another order -> of transposes", rule::contract_order},
    {"contract-letters", "letters of a contract by role: b batch, m rows, n columns, k summed", rule::contract_letters},
    {"reshape-broadcast", "reshape of broadcast -> broadcast of a smaller reshape", rule::reshape_broadcast},
    {"broadcast-reshape", "broadcast of a reshape that adds extents of 1 -> broadcast", rule::broadcast_reshape},
    {"pow-small", "pow(x, 1 | 2 | 3 | -1 | 0.5) -> x | x * x | x * x * x | rcp(x) | sqrt(x), or infinity for -infinity",
     rule::pow_small},
    {"neg-one", "x * -1, 0 - x -> -x", rule::neg_one},
    {"neg-add", "x + -y -> x - y, x - -y -> x + y", rule::neg_add},
    {"sub-constant", "x - c -> x + -c", rule::sub_constant},
    {"div-power", "x / 2^k -> x * 2^-k", rule::div_power},
    {"div-constant", "x / c -> x * (1/c)", rule::div_constant, true},
    {"one-over", "1 / x -> rcp(x)", rule::one_over},
    {"rcp-sqrt", "rcp(sqrt(x)) -> rsqrt(x)", rule::rcp_sqrt},
    {"div-sqrt", "x / sqrt(y) -> x * rsqrt(y)", rule::div_sqrt, true},
    {"div-repeated", "x / broadcast y -> x * broadcast rcp(y)", rule::div_repeated, true},
    {"sigmoid", "1 / (1 + exp(-x)) -> sigmoid(x)", rule::sigmoid},
    {"scale-product", "(x * 2^k) * y -> (x * y) * 2^k, or x * (y * 2^k) for a factor below 1", rule::scale_product},
    {"scale-scale", "(x * c) * d -> x * (c * d)", rule::scale_scale},
    {"byte-products", "contract((a - za) * s, (b - zb) * t), of bytes -> (contract(a, b) - sums of them) * (s * t)",
     rule::byte_products},
    {"requantise", "round((x - z) * s / s) + z, clamped to the bytes that x has -> x", rule::requantise},
    {"scale-contract", "contract(x * c, y) -> contract(x, y) * c", rule::scale_contract},
    {"hoist-broadcast", "f(broadcast a, broadcast b) -> broadcast f(a, b)", rule::hoist_broadcast},
    {"take-elementwise", "take_along of f(a, b) -> f(take_along a, take_along b), when that takes fewer elements",
     rule::take_elementwise},
    {"take-broadcast", "take_along over a repeated axis, or one of extent 1, where no index is outside -> broadcast",
     rule::take_broadcast},
    {"concat-elementwise", "concat(f(a), b) -> select(i < n, f(pad a), pad b), of values in memory",
     rule::concat_elementwise},
};

// kMaxRounds and kMaxStepsPerNode (applications of rules in one round, per node of the graph) limit the work; no graph
// is expected to reach them. If it does, the graph built so far is right, but not fully simplified. kNodeSteps: what
// one node adds to a caller's Work.
constexpr int kMaxRounds = 100;
constexpr uint64_t kNodeSteps = 2;
constexpr int64_t kMaxStepsPerNode = 1000;

// One walk over the old graph's nodes in order, which builds the new graph. A node that a rule builds is simplified at
// once, so that a view moves through a long chain in one round. There is an explicit stack instead of recursion, since
// a chain may be as long as the graph.
class Round {
 public:
  Round(const std::vector<const Rule*>& rules, int64_t nodes, std::set<std::string, std::less<>>* fired)
      : rules_(rules), fuel_(kMaxStepsPerNode * (nodes + 1)), fired_(fired) {}

  // Simplifies one node of the old graph and returns its number in the new graph. `tied` is the entry of the node in
  // the list that tied_nodes() returns.
  NodeId settle(Node node, bool tied) {
    tied_ = tied;
    std::optional<NodeId> done = step(std::move(node));
    while (!stack_.empty()) {
      Frame& top = stack_.back();
      if (done) {  // the node with number top.next has been simplified to node `done`
        if (*done != top.next) became_[top.next] = *done;
        ++top.next;
      }
      if (top.next < top.last) {
        done = step(to_.node(top.next));
      } else {
        done = resolve(top.result);
        stack_.pop_back();
      }
    }
    return *done;
  }

  Builder& to() { return to_; }
  bool changed() const { return changed_; }

 private:
  // One application of a rule. Of the nodes that the rule built, those in [next, last) must still be simplified.
  // `result` is the replacement that the rule returned.
  struct Frame {
    NodeId next, last, result;
  };

  NodeId resolve(NodeId id) const {
    for (auto at = became_.find(id); at != became_.end(); at = became_.find(id)) id = at->second;
    return id;
  }

  // Applies a rule to the node, pushes a frame for that application and returns nullopt. If no rule applies, adds the
  // node to the new graph and returns its number there.
  std::optional<NodeId> step(Node node) {
    for (NodeId& operand : node.operands) operand = resolve(operand);
    const NodeId first = to_.size();
    for (const Rule* rule : rules_) {
      if (fuel_ <= 0) break;
      if (tied_ && rule->moves_ties) continue;
      const std::optional<NodeId> result = rule->apply(to_, node);
      if (!result) {
        WL_CHECK(to_.size() == first, rule->name, " builds although it does not apply");
        continue;
      }
      --fuel_;
      changed_ = true;
      if (fired_ != nullptr) fired_->emplace(rule->name);
      stack_.push_back({first, to_.size(), *result});
      return std::nullopt;
    }
    return to_.add_node(std::move(node));
  }

  const std::vector<const Rule*>& rules_;
  int64_t fuel_;
  std::set<std::string, std::less<>>* fired_;
  Builder to_;
  std::vector<Frame> stack_;
  // For each node that one rule built and another rule replaced: its replacement.
  std::unordered_map<NodeId, NodeId> became_;
  bool changed_ = false, tied_ = false;
};

bool rounds_to_integer(const Graph& graph, const Node& node) {
  return node.op == Op::round || node.op == Op::floor || node.op == Op::ceil ||
         (node.op == Op::cast && !is_float(node.dtype) && is_float(graph.nodes[node.operands[0]].dtype));
}

// Marks every node that an output needs and whose value is rounded to an integer: directly, or after views, products,
// quotients, negations, minima, maxima and selections.
std::vector<char> tied_nodes(const Graph& graph) {
  std::vector<char> live(graph.nodes.size(), 0), tied(graph.nodes.size(), 0);
  for (const Output& output : graph.outputs) live[output.node] = 1;
  for (size_t id = graph.nodes.size(); id-- > 0;) {
    if (!live[id]) continue;
    const Node& node = graph.nodes[id];
    const bool passes = class_of(node.op) == OpClass::kView || node.op == Op::div || node.op == Op::mul ||
                        node.op == Op::min || node.op == Op::max || node.op == Op::neg || node.op == Op::select;
    for (NodeId operand : node.operands) {
      live[operand] = 1;
      if (rounds_to_integer(graph, node) || (tied[id] && passes)) tied[operand] = 1;
    }
  }
  return tied;
}

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

absl::StatusOr<Graph> simplify(const Graph& graph, const std::set<std::string, std::less<>>& disabled,
                               std::set<std::string, std::less<>>* fired, int* rounds, Work* work) {
  std::vector<const Rule*> enabled;
  for (const Rule& rule : kRules) {
    if (!disabled.contains(rule.name)) enabled.push_back(&rule);
  }
  Graph current = graph;
  for (int round = 1; round <= kMaxRounds; ++round) {
    if (rounds != nullptr) *rounds = round;
    Round rewrite(enabled, static_cast<int64_t>(current.nodes.size()), fired);
    std::vector<NodeId> renamed;
    renamed.reserve(current.nodes.size());
    const std::vector<char> tied = tied_nodes(current);
    for (size_t id = 0; id < current.nodes.size(); ++id) {
      if (!go_on(work, kNodeSteps)) return work->status();
      Node& node = current.nodes[id];
      for (NodeId& operand : node.operands) operand = renamed[operand];
      renamed.push_back(rewrite.settle(std::move(node), tied[id] != 0));
    }
    for (const Output& output : current.outputs) rewrite.to().output(output.name, renamed[output.node]);
    WL_ASSIGN_OR_RETURN(current, rewrite.to().finish());
    if (!rewrite.changed()) return current;
  }
  return current;
}

absl::StatusOr<Graph> with_byte_products(const Graph& graph) {
  // The other rules of this list show the rule byte-products which values are constant.
  const std::set<std::string, std::less<>> wanted = {"commute",       "add-zero",      "cast-same",    "fold-constants",
                                                     "view-constant", "identity-view", "byte-products"};
  std::set<std::string, std::less<>> disabled, fired;
  for (const Rule& rule : kRules)
    if (!wanted.contains(rule.name)) disabled.emplace(rule.name);
  WL_ASSIGN_OR_RETURN(Graph changed, simplify(graph, disabled, &fired));
  return fired.contains("byte-products") ? std::move(changed) : graph;
}

}  // namespace wl
