#include "compiler/cover/slab/carried.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/cover/slab/carried_part.h"
#include "compiler/domain/axes.h"

namespace wl {
namespace {

// Makes the four graphs of CarriedParts. In the graph of a turn (an iteration over a part of the carried axis), the
// carried axis is the first dimension of values. Neighbours in memory then belong to different rows of the result, so
// reductions need no sums across lanes, and contractions need not pack these values. An input in another order is first
// transposed by a stage of its own, since its vectors would otherwise be gathered.
class Parts {
 public:
  Parts(const Graph& group, const CarriedAxis& axis, const Slab& slab, bool in_place)
      : group_(group),
        axis_(axis),
        slab_(slab),
        in_place_(in_place),
        from_(slab.graph),
        before_(slab, made_.before),
        place_(slab, made_.place),
        turn_(slab, made_.turn),
        after_(slab, made_.after) {}

  absl::StatusOr<CarriedParts> run() {
    mark();
    WL_RETURN_IF_ERROR(find_function());
    carry_reduction();
    for (NodeId id : carried_)
      if (id != function_.reduction) WL_RETURN_IF_ERROR(carry_sum(id));
    for (size_t i = 0; i < from_.outputs.size(); ++i) {
      const std::string name = cat("o", i);
      made_.after.ends[name] = {.output = static_cast<int>(i)};
      const NodeId value = after(from_.outputs[i].node);
      if (value < 0) return refuse(from_.outputs[i].node);
      after_.output(name, value);
    }
    for (PartBuilder* part : {&before_, &place_, &turn_, &after_}) WL_RETURN_IF_ERROR(part->finish_part());
    return std::move(made_);
  }

 private:
  // A value in the graph `turn`. `first`: whether its first dimension is the carried axis.
  struct InTurn {
    NodeId node = -1;
    bool first = false;
  };
  // A factor by which sums may be multiplied or divided after they are complete.
  struct Factor {
    Op op;
    NodeId by;  // the factor's value, which is constant along the carried axis
  };

  // Returns which dimension of a node of the slab is the carried axis; -1: none.
  int dim(NodeId id) const {
    if (from_.nodes[id].op == Op::input) return -1;  // inputs of the slab are whole; their slices have the carried axis
    const NodeId group = slab_.origin[id] >= 0 ? slab_.origin[id] : slab_.origin[from_.nodes[id].operands[0]];
    return axis_.dim[group];
  }

  // Whether the node is an input that stands for one iteration's part of an iota along the carried axis.
  bool is_counted(NodeId id) const {
    const Node& node = from_.nodes[id];
    if (node.op != Op::input || slab_.origin[id] < 0) return false;
    const Node& origin = group_.nodes[slab_.origin[id]];
    return origin.op == Op::iota && axis_.dim[slab_.origin[id]] == origin.ints[0];
  }

  void mark() {
    readers_.assign(from_.nodes.size(), 0);
    for (const Node& node : from_.nodes)
      for (NodeId operand : node.operands) ++readers_[operand];
    for (const Output& output : from_.outputs) ++readers_[output.node];
    for (NodeId id = 0; id < static_cast<NodeId>(from_.nodes.size()); ++id) {
      const Node& node = from_.nodes[id];
      const bool slice = slab_.origin[id] < 0;
      const bool sums =
          !slice && std::binary_search(axis_.reductions.begin(), axis_.reductions.end(), slab_.origin[id]);
      bool moves = (slice && dim(id) >= 0) || is_counted(id), later = sums;
      for (NodeId operand : node.operands) {
        moves = moves || moves_[operand];
        later = later || later_[operand];
      }
      moves_.push_back(moves && !sums && !later);
      later_.push_back(later);
      if (sums) carried_.push_back(id);
    }
  }

  absl::Status find_function() {
    for (NodeId id = 0; id < static_cast<NodeId>(from_.nodes.size()); ++id) {
      const std::optional<Corrected> found = corrected(from_, id);
      if (!found || std::find(carried_.begin(), carried_.end(), found->reduction) == carried_.end()) continue;
      if (function_.value >= 0) return refuse(id);
      function_ = *found;
    }
    if (function_.value < 0) return invalid("no reduction over this axis has a correction");
    const Node& reduction = from_.nodes[function_.reduction];
    if (reduction.dtype != DType::f32 || later_[reduction.operands[0]]) return refuse(function_.reduction);
    return absl::OkStatus();
  }

  absl::Status refuse(NodeId id) const {
    return invalid("%", slab_.origin[id], " ", name_of(from_.nodes[id].op), ": cannot be reduced in parts");
  }

  int add_value(const std::string& name, const Node& like, std::optional<double> start) {
    made_.values.push_back({cat(name, made_.values.size()), like.dtype, like.shape, start, -1});
    return static_cast<int>(made_.values.size()) - 1;
  }

  // Adds to the graph `turn` the reduction r, the factor that corrects earlier sums, and the values of function(x - r).
  void carry_reduction() {
    const Node& node = from_.nodes[function_.reduction];
    const Op combine = combine_of(node.op);
    const double none = identity_of(combine, node.dtype);
    const int held = add_value("carried", node, none), next = add_value("next", node, std::nullopt);
    made_.values[next].becomes = held;
    value_of_[function_.reduction] = held;
    const NodeId elements = first(node.operands[0]);
    const NodeId before = turn_.read({.value = held}, node);
    const NodeId now = turn_.elementwise(combine, {before, turn_.reduce(node.op, elements, {0})});
    turn_.write(next, now);
    // While the reduction is still its identity (-inf), 0 is subtracted instead of it, so the sums stay 0 and not NaN.
    const NodeId is_none = turn_.elementwise(Op::eq, {now, turn_.constant_like(none, now)});
    const NodeId origin = turn_.elementwise(Op::select, {is_none, turn_.constant_like(0, now), now});
    const Op function = from_.nodes[function_.value].op;
    correction_ = turn_.elementwise(function, {turn_.sub(before, origin)});
    turn_memo_[function_.value] = {turn_.elementwise(function, {turn_.sub(elements, along(origin, elements))}), true};
  }

  // Broadcasts a value without the carried axis to the shape of `like`, whose first dimension is that axis.
  NodeId along(NodeId value, NodeId like) {
    std::vector<int64_t> dims(turn_.node(value).shape.size());
    std::iota(dims.begin(), dims.end(), 1);
    return turn_.broadcast(value, turn_.node(like).shape, dims);
  }

  absl::Status carry_sum(NodeId id) {
    const Node& node = from_.nodes[id];
    const bool contracts = node.op == Op::contract;
    if ((node.op != Op::reduce_sum && !contracts) || !is_float(node.dtype)) return refuse(id);
    if (!contracts && (node.ints.size() != 1 || node.dtype != DType::f32)) return refuse(id);
    Node sum = node;  // sums of floats narrower than f32 are carried as f32, and rounded once at the end
    sum.dtype = DType::f32;
    const size_t position = contracts && !later_[node.operands[0]] ? 1 : 0;
    std::vector<Factor> factors;
    const InTurn value = multiple(node.operands[position], factors);
    if (value.node < 0) return refuse(id);
    const int held = add_value("carried", sum, 0);
    value_of_[id] = held;
    const NodeId before = turn_.read({.value = held}, sum);
    // For each dimension of the carried reduction's result: which dimension of the sum it corresponds to.
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < static_cast<int64_t>(from_.nodes[node.operands[position]].shape.size()); ++i)
      if (i != dim(node.operands[position])) rows.push_back(i);
    if (!in_sum(node, position, rows)) return refuse(id);
    if (contracts) {
      if (later_[node.operands[1 - position]]) return refuse(id);
      const NodeId now =
          contraction(id, position == 0 ? value : InTurn{}, position == 1 ? value : InTurn{}, false, 1, true);
      turn_.write(held, turn_.elementwise(Op::fma, {before, turn_.spread(correction_, node, rows), now}));
    } else {
      const NodeId now = turn_.reduce(node.op, value.node, {value.first ? 0 : dim(node.operands[0])});
      const int next = add_value("next", node, std::nullopt);
      made_.values[next].becomes = held;
      turn_.write(next, turn_.elementwise(Op::fma, {before, turn_.spread(correction_, node, rows), now}));
    }
    return finish_sum(id, held, position, rows, factors);
  }

  // Adds a completed sum, with its factors applied, to the graph `after`, which runs after the last iteration.
  absl::Status finish_sum(NodeId id, int held, size_t position, const std::vector<int64_t>& rows,
                          const std::vector<Factor>& factors) {
    Node node = from_.nodes[id];
    const DType dtype = std::exchange(node.dtype, DType::f32);
    // Adds r - r: 0, or NaN where the reduction r is infinite or NaN, since function(x - r) is NaN there too.
    const NodeId reduction = after_.read({.value = value_of_[function_.reduction]}, from_.nodes[function_.reduction]);
    const NodeId nothing = after_.spread(after_.sub(reduction, reduction), node, rows);
    NodeId value = after_.add(after_.read({.value = held}, node), nothing);
    for (const Factor& factor : factors) {
      const NodeId by = spread_factor(id, position, factor.by);
      if (by < 0) return refuse(id);
      value = after_.elementwise(factor.op, {value, by});
    }
    after_memo_[id] = dtype == DType::f32 ? value : after_.cast(value, dtype);
    return absl::OkStatus();
  }

  // Returns an operand's factor `by` as a factor of the sum of that operand, in the sum's shape; -1 if impossible.
  NodeId spread_factor(NodeId sum, size_t position, NodeId by) {
    const Node& node = from_.nodes[sum];
    const Node& factor = from_.nodes[by];
    if (factor.op == Op::constant) return after_.constant(factor.value, factor.dtype, node.shape);
    const NodeId value = after(factor.operands[0]);
    if (value < 0) return -1;
    std::vector<int64_t> dims = factor.ints;
    return in_sum(node, position, dims) ? after_.spread(value, node, dims) : -1;
  }

  // Whether a node of the slab has the same value at all positions along the carried axis.
  bool is_level(NodeId id) const {
    const Node& node = from_.nodes[id];
    return node.op == Op::constant || (node.op == Op::broadcast && !moves_[id] && dim(id) >= 0 &&
                                       std::find(node.ints.begin(), node.ints.end(), dim(id)) == node.ints.end());
  }

  // Builds node `id` without its factors that are constant along the axis; these go to `factors`, for the sums later.
  InTurn multiple(NodeId id, std::vector<Factor>& factors) {
    if (id == function_.value) return turn_memo_[id];
    const Node& node = from_.nodes[id];
    if (rounds(node)) {
      const InTurn value = multiple(node.operands[0], factors);
      // Without their factors, products may be too large for f16. The function's values fit, since they are at most 1.
      const bool in_range = node.dtype == DType::bf16 || value.node == turn_memo_[function_.value].node;
      if (value.node < 0 || !in_range) return {};
      return {turn_.cast(value.node, node.dtype), value.first};
    }
    if ((node.op != Op::mul && node.op != Op::div) || node.dtype != DType::f32) return {};
    const std::vector<NodeId>& of = node.operands;
    const size_t at = node.op == Op::mul && !reaches(of[0]) ? 1 : 0;
    const InTurn value = multiple(of[at], factors);
    if (value.node < 0) return {};
    const NodeId by = of[1 - at];
    if (is_level(by)) {
      factors.push_back({node.op, by});
      return value;
    }
    if (later_[by]) return {};
    return {turn_.elementwise(node.op, {value.node, first(by)}), true};
  }
  // Whether the node rounds f32 to narrow floats. Its error is relative, so factors may be applied after it as well.
  bool rounds(const Node& node) const {
    return node.op == Op::cast && is_float(node.dtype) && from_.nodes[node.operands[0]].dtype == DType::f32;
  }
  bool reaches(NodeId id) const {
    if (id == function_.value) return true;
    const Node& node = from_.nodes[id];
    return (node.op == Op::mul || node.op == Op::div || rounds(node)) &&
           std::any_of(node.operands.begin(), node.operands.end(), [&](NodeId o) { return reaches(o); });
  }

  NodeId first(NodeId id) {
    const int along = dim(id);
    if (along > 0 && !in_place_ && is_view(id)) return placed(id);
    const InTurn value = in_turn(id);
    if (value.first || along <= 0) return value.node;
    return turn_.transpose(value.node, dim_first(id));
  }
  std::vector<int64_t> dim_first(NodeId id) const {
    std::vector<int64_t> perm = {dim(id)};
    for (int64_t i = 0; i < static_cast<int64_t>(from_.nodes[id].shape.size()); ++i)
      if (i != dim(id)) perm.push_back(i);
    return perm;
  }

  // Whether the node is an input of the group, or a view of one through any views except broadcasts.
  bool is_view(NodeId id) const {
    const Node& node = from_.nodes[id];
    if (node.op == Op::input) return slab_.origin[id] >= 0 && group_.nodes[slab_.origin[id]].op == Op::input;
    return class_of(node.op) == OpClass::kView && node.op != Op::broadcast && node.operands.size() == 1 &&
           is_view(node.operands[0]);
  }

  // Returns an iteration's part of an input, copied by the graph `place` with the carried axis as first dimension.
  NodeId placed(NodeId id) {
    const NodeId value = place_.copy(id, 1, dim_first(id));
    const auto [known, is_new] = placed_.try_emplace(value, -1);
    if (is_new) {
      const int number = add_value("placed", place_.node(value), std::nullopt);
      made_.values.back().of_turn = true;
      place_.write(number, value);
      known->second = turn_.read({.value = number}, place_.node(value));
    }
    return known->second;
  }

  NodeId plain(NodeId id) {
    const InTurn value = in_turn(id);
    const int along = dim(id);
    if (!value.first || along <= 0) return value.node;
    std::vector<int64_t> perm;
    for (int64_t i = 0; i < static_cast<int64_t>(from_.nodes[id].shape.size()); ++i)
      perm.push_back(i == along ? 0 : i + (i < along ? 1 : 0));
    return turn_.transpose(value.node, perm);
  }

  InTurn in_turn(NodeId id) {
    if (const auto known = turn_memo_.find(id); known != turn_memo_.end()) return known->second;
    return turn_memo_[id] = make_in_turn(id);
  }

  InTurn make_in_turn(NodeId id) {
    Node node = from_.nodes[id];
    if (node.op == Op::input) return {turn_.read({.input = slab_.origin[id]}, node), false};
    const int along = dim(id);
    if (!moves_[id] && is_computed(node) && along < 0) return {prepare(id, 1, {}), false};
    if (const auto [product, scale] = scaled_product(from_, readers_, id); product >= 0 && along >= 0)
      return {contraction(product, {}, {}, true, scale), true};
    const auto moved = [&](int64_t i) { return i == along ? 0 : i + (i < along ? 1 : 0); };
    const bool first_there = along >= 0 && (class_of(node.op) == OpClass::kElementwise || node.op == Op::contract ||
                                            node.op == Op::constant || node.op == Op::broadcast);
    if (node.op == Op::contract) return {contraction(id, {}, {}, first_there, 1), first_there};
    if (first_there) {
      for (size_t i = 0; i < node.shape.size(); ++i)
        node.shape[static_cast<size_t>(moved(static_cast<int64_t>(i)))] = from_.nodes[id].shape[i];
      if (node.op == Op::broadcast) {  // the carried axis becomes the first dimension of the operand too
        for (int64_t& to : node.ints) to = moved(to);
        std::sort(node.ints.begin(), node.ints.end());
      }
    }
    for (NodeId& operand : node.operands) operand = first_there ? first(operand) : plain(operand);
    return {turn_.add_node(std::move(node)), first_there};
  }

  // Builds contraction `id`, times `scale`; builds `a` and `b`, its operands, if not given. `sums`: the result is f32.
  NodeId contraction(NodeId id, InTurn a, InTurn b, bool out_first, double scale, bool sums = false) {
    const Node& node = from_.nodes[id];
    Einsum einsum = parse_einsum(node.text).value();
    for (size_t k = 0; k < 2; ++k) {
      std::string& letters = k == 0 ? einsum.a : einsum.b;
      InTurn& value = k == 0 ? a : b;
      const NodeId operand = node.operands[k];
      // An operand that no iteration changes is prepared once: scaled, and with its summed dimensions outermost.
      std::string summed, kept;
      for (char letter : letters) (einsum.out.find(letter) == std::string::npos ? summed : kept) += letter;
      if (!in_place_ && out_first && !moves_[operand] && dim(operand) < 0 && summed + kept != letters &&
          !summed.empty()) {
        std::vector<int64_t> perm;
        for (char letter : summed + kept) perm.push_back(static_cast<int64_t>(letters.find(letter)));
        const bool takes_scale = from_.nodes[operand].dtype == DType::f32;
        value = {prepare(operand, takes_scale ? scale : 1, perm), false};
        if (takes_scale) scale = 1;
        letters = summed + kept;
        continue;
      }
      if (value.node < 0) value = in_turn(operand);
      if (value.first) letters = moved_first(letters, dim(operand));
    }
    const NodeId product = turn_.contract(
        a.node, b.node, cat(einsum.a, ",", einsum.b, "->", out_first ? moved_first(einsum.out, dim(id)) : einsum.out),
        sums ? DType::f32 : node.dtype, node.tf32);
    return scale == 1 ? product : turn_.mul(product, turn_.constant_like(scale, product));
  }

  // Returns a value that no iteration changes, computed before the first one, times `scale` and transposed by `perm`.
  NodeId prepare(NodeId id, double scale, const std::vector<int64_t>& perm) {
    const NodeId value = before_.copy(id, scale, perm);
    const int number = add_value("prepared", before_.node(value), std::nullopt);
    before_.write(number, value);
    return turn_.read({.value = number}, before_.node(value));
  }

  // Returns a value in the graph `after`, which runs after the last iteration; -1: it exists within iterations only.
  NodeId after(NodeId id) {
    if (const auto known = after_memo_.find(id); known != after_memo_.end()) return known->second;
    Node node = from_.nodes[id];
    if (moves_[id] || (later_[id] && dim(id) >= 0)) return -1;
    if (const auto held = value_of_.find(id); held != value_of_.end())
      return after_memo_[id] = after_.read({.value = held->second}, node);
    if (node.op == Op::input) return after_memo_[id] = after_.read({.input = slab_.origin[id]}, node);
    for (NodeId& operand : node.operands) {
      operand = after(operand);
      if (operand < 0) return -1;
    }
    return after_memo_[id] = after_.add_node(std::move(node));
  }

  const Graph& group_;
  const CarriedAxis& axis_;
  const Slab& slab_;
  const bool in_place_;
  const Graph& from_;
  CarriedParts made_;
  PartBuilder before_, place_, turn_, after_;
  // Of each node of the slab: whether iterations change it; whether it is or needs a reduction over the carried axis.
  std::vector<char> moves_, later_;
  std::vector<int> readers_;  // of each node of the slab: how often nodes and outputs use it
  std::vector<NodeId> carried_;
  Corrected function_;
  NodeId correction_ = -1;
  std::map<NodeId, int> value_of_;  // of each reduction or sum over the carried axis: its index in CarriedParts::values
  std::map<NodeId, InTurn> turn_memo_;
  std::map<NodeId, NodeId> placed_;  // of each node of the graph `place`: its value in the graph `turn`
  std::map<NodeId, NodeId> after_memo_;
};

}  // namespace

absl::StatusOr<CarriedParts> carried_parts(const Graph& group, const CarriedAxis& axis, const Slab& slab,
                                           bool in_place) {
  return Parts(group, axis, slab, in_place).run();
}

}  // namespace wl
