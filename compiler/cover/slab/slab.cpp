#include "compiler/cover/slab/slab.h"

#include <algorithm>

#include "compiler/ir/index_map.h"

namespace wl {
namespace {

using Cuts = std::vector<Slab::Cut>;

int64_t length_of(const Slab::Cut& cut, int64_t extent) {
  return cut.axis < 0 ? extent : cut.length;
}

Cuts whole(const Shape& shape) {
  return Cuts(shape.size());
}

// Carries the cuts of a reshape's result (`wanted`) over to its operand (`needed`); false where that is impossible.
// The dimensions of both shapes are grouped so that corresponding groups have equal products. In each group only the
// first dimension of more than one element may be cut, and a block's part must consist of whole positions along the
// operand's first such dimension.
bool reshaped(const Shape& from, const Shape& to, const Cuts& wanted, Cuts& needed) {
  needed = whole(from);
  for (size_t i = 0, j = 0; i < from.size() || j < to.size();) {
    const size_t first_from = i, first_to = j;
    int64_t mine = 1, theirs = 1;
    if (i < from.size()) mine = from[i++];
    if (j < to.size()) theirs = to[j++];
    while (mine != theirs) {
      if (mine < theirs) {
        if (i == from.size()) return false;
        mine *= from[i++];
      } else {
        if (j == to.size()) return false;
        theirs *= to[j++];
      }
    }
    size_t leading = j;
    for (size_t k = j; k-- > first_to;)
      if (wanted[k].axis >= 0) leading = k;
    if (leading == j) continue;
    // The product of the extents of the result's dimensions after the cut one, within this group of dimensions.
    int64_t inside = 1;
    for (size_t k = first_to; k < j; ++k) {
      if (k < leading && to[k] != 1) return false;
      if (k > leading && wanted[k].axis >= 0) return false;
      if (k > leading) inside *= to[k];
    }
    const int64_t run = wanted[leading].length * inside;
    size_t outer = first_from;
    while (outer + 1 < i && from[outer] == 1) ++outer;
    int64_t below = 1;
    for (size_t k = outer + 1; k < i; ++k) below *= from[k];
    if (run % below != 0) return false;
    needed[outer] = {wanted[leading].axis, run / below};
  }
  return true;
}

class Demand {
 public:
  Demand(const Graph& group, const CarriedAxis* carried, int64_t turn, Slab& slab)
      : group_(group), carried_(carried), turn_(turn), slab_(slab) {}

  absl::Status run(const Cuts& first) {
    slab_.cuts.resize(group_.nodes.size());
    slab_.needed.assign(group_.nodes.size(), 0);
    WL_RETURN_IF_ERROR(want(group_.outputs[0].node, first));
    for (size_t i = 1; i < group_.outputs.size(); ++i) WL_RETURN_IF_ERROR(also(group_.outputs[i].node, first));
    for (auto id = static_cast<NodeId>(group_.nodes.size()); id-- > 0;)
      if (slab_.needed[id]) WL_RETURN_IF_ERROR(operands_of(id));
    return absl::OkStatus();
  }

 private:
  const Shape& shape(NodeId id) const { return group_.nodes[id].shape; }

  absl::Status want(NodeId id, const Cuts& cuts) {
    if (slab_.needed[id] && slab_.cuts[id] != cuts)
      return invalid(node_text(group_, id), ": one op needs all of it and another only a block's part");
    slab_.needed[id] = 1;
    slab_.cuts[id] = cuts;
    return absl::OkStatus();
  }

  // Cuts a further output as the first output is cut, if both have equal extents in the cut dimensions. Any other
  // output is cut as the ops that read it need it.
  absl::Status also(NodeId id, const Cuts& first) {
    if (slab_.needed[id] || shape(id).size() != first.size()) return absl::OkStatus();
    const Shape& main = shape(group_.outputs[0].node);
    for (size_t i = 0; i < first.size(); ++i)
      if (first[i].axis >= 0 && shape(id)[i] != main[i]) return absl::OkStatus();
    return want(id, first);
  }

  absl::Status refuse(NodeId id) const {
    return invalid(node_text(group_, id), ": a block's part of it is not one contiguous part of an operand");
  }

  absl::Status operands_of(NodeId id) {
    const Node& node = group_.nodes[id];
    const Cuts& mine = slab_.cuts[id];
    if (node.operands.empty()) return absl::OkStatus();
    Cuts theirs = whole(shape(node.operands[0]));
    switch (class_of(node.op)) {
      case OpClass::kView:
        return viewed(id);
      case OpClass::kContract:
        return contracted(id);
      case OpClass::kReduce:
        for (size_t i = 0, kept = 0; i < theirs.size(); ++i)
          theirs[i] = std::count(node.ints.begin(), node.ints.end(), static_cast<int64_t>(i))
                          ? reduced(node.operands[0], i)
                          : mine[kept++];
        return want(node.operands[0], theirs);
      case OpClass::kGather:
        theirs = mine;
        theirs[node.ints[0]] = {};
        WL_RETURN_IF_ERROR(want(node.operands[1], mine));
        return want(node.operands[0], theirs);
      default:
        for (NodeId operand : node.operands) WL_RETURN_IF_ERROR(want(operand, mine));
        return absl::OkStatus();
    }
  }

  absl::Status viewed(NodeId id) {
    const Node& node = group_.nodes[id];
    const Cuts& mine = slab_.cuts[id];
    const Shape& from = shape(node.operands[0]);
    Cuts theirs = whole(from);
    switch (info(node.op).view) {
      case ViewKind::kSameOrder:
        if (!reshaped(from, node.shape, mine, theirs)) return refuse(id);
        break;
      case ViewKind::kJoined:
        if (mine[node.ints[0]].axis >= 0) return refuse(id);
        for (NodeId operand : node.operands) WL_RETURN_IF_ERROR(want(operand, mine));
        return absl::OkStatus();
      case ViewKind::kAxes: {
        const ViewMap map = view_map(node, from);
        for (size_t i = 0; i < from.size(); ++i) {
          const auto& steps = map.axes[i].steps;
          const bool is_cut = std::any_of(steps.begin(), steps.end(),
                                          [&](const ViewMap::Step& step) { return mine[step.axis].axis >= 0; });
          if (!is_cut) continue;
          const std::optional<size_t> to = map.unmoved(i);
          if (!to) return refuse(id);
          theirs[i] = mine[*to];
        }
        break;
      }
    }
    return want(node.operands[0], theirs);
  }

  absl::Status contracted(NodeId id) {
    const Node& node = group_.nodes[id];
    WL_ASSIGN_OR_RETURN(const Einsum einsum, parse_einsum(node.text));
    for (size_t k = 0; k < 2; ++k) {
      const std::string& letters = k == 0 ? einsum.a : einsum.b;
      Cuts theirs = whole(shape(node.operands[k]));
      for (size_t i = 0; i < letters.size(); ++i) {
        const size_t at = einsum.out.find(letters[i]);
        theirs[i] = at != std::string::npos ? slab_.cuts[id][at] : reduced(node.operands[k], i);
      }
      WL_RETURN_IF_ERROR(want(node.operands[k], theirs));
    }
    return absl::OkStatus();
  }

  // Returns the cut of a summed dimension of `operand`: if it is the carried axis, the part of one iteration;
  // otherwise the whole dimension.
  Slab::Cut reduced(NodeId operand, size_t dimension) const {
    if (carried_ == nullptr || carried_->dim[operand] != static_cast<int>(dimension)) return {};
    return {static_cast<int>(slab_.counts.size()), turn_};
  }

  const Graph& group_;
  const CarriedAxis* carried_;
  const int64_t turn_;
  Slab& slab_;
};

// No block may repeat the work of another. So a block's part of every reduction, contraction, lookup and output must
// differ from that of other blocks along every axis of blocks.
absl::Status check_no_repeats(const Graph& group, const Slab& slab) {
  const auto moves = [&](NodeId id) {
    return std::all_of(slab.counts.begin(), slab.counts.end(), [&, axis = 0](int64_t count) mutable {
      const int mine = axis++;
      return count == 1 || std::any_of(slab.cuts[id].begin(), slab.cuts[id].end(),
                                       [mine](const Slab::Cut& cut) { return cut.axis == mine; });
    });
  };
  for (NodeId id = 0; id < static_cast<NodeId>(group.nodes.size()); ++id) {
    const OpClass cls = class_of(group.nodes[id].op);
    const bool expensive = cls == OpClass::kReduce || cls == OpClass::kContract || cls == OpClass::kGather;
    if (expensive && slab.needed[id] && !moves(id))
      return invalid(node_text(group, id), ": every block would compute it");
  }
  for (const Output& output : group.outputs) {
    if (!slab.needed[output.node])
      return invalid(node_text(group, output.node), ": is not needed for output ", group.outputs[0].name);
    if (!moves(output.node)) return invalid(node_text(group, output.node), ": every block would store it");
  }
  return absl::OkStatus();
}

absl::Status build(const Graph& group, Slab& slab) {
  std::vector<NodeId> now(group.nodes.size(), -1);
  const auto add = [&](Node node, NodeId origin) {
    slab.graph.nodes.push_back(std::move(node));
    slab.origin.push_back(origin);
    return static_cast<NodeId>(slab.graph.nodes.size()) - 1;
  };
  for (NodeId id = 0; id < static_cast<NodeId>(group.nodes.size()); ++id) {
    Node node = group.nodes[id];
    const Cuts& cuts = slab.cuts[id];
    if (node.op == Op::input) {
      now[id] = add(node, id);
      if (std::all_of(cuts.begin(), cuts.end(), [](const Slab::Cut& cut) { return cut.axis < 0; })) continue;
      Node slice{.op = Op::slice, .dtype = node.dtype, .shape = node.shape, .operands = {now[id]}};
      for (size_t i = 0; i < cuts.size(); ++i) slice.shape[i] = length_of(cuts[i], node.shape[i]);
      slice.ints.assign(cuts.size(), 0);
      slice.ints2.assign(cuts.size(), 1);
      now[id] = add(std::move(slice), -1);
      continue;
    }
    if (!slab.needed[id]) continue;
    if (node.op == Op::iota && cuts[node.ints[0]].axis >= 0) {
      const int64_t axis = node.ints[0], length = cuts[axis].length;
      const NodeId counted =
          add({.op = Op::input, .dtype = node.dtype, .shape = {length}, .text = cat("counted", id)}, id);
      Node spread{.op = Op::broadcast, .dtype = node.dtype, .shape = node.shape, .operands = {counted}, .ints = {axis}};
      for (size_t i = 0; i < cuts.size(); ++i) spread.shape[i] = length_of(cuts[i], node.shape[i]);
      now[id] = add(std::move(spread), id);
      continue;
    }
    for (size_t i = 0; i < cuts.size(); ++i) node.shape[i] = length_of(cuts[i], node.shape[i]);
    for (NodeId& operand : node.operands) operand = now[operand];
    now[id] = add(std::move(node), id);
  }
  for (const Output& output : group.outputs) slab.graph.outputs.push_back({output.name, now[output.node]});
  return verify(slab.graph);
}

// Does the same as slab_of(), but does not make Slab::graph and Slab::origin.
absl::StatusOr<Slab> divided(const Graph& group, const std::vector<int64_t>& lengths,
                             const CarriedAxis* carried = nullptr, int64_t turn = 0) {
  const Shape& shape = group.nodes[group.outputs[0].node].shape;
  if (lengths.size() != shape.size()) return invalid(lengths.size(), " lengths for ", shape_text(shape));
  Slab slab;
  Cuts cuts = whole(shape);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (lengths[i] <= 0 || shape[i] % lengths[i] != 0)
      return invalid("lengths of ", lengths[i], " do not divide an extent of ", shape[i]);
    if (lengths[i] == shape[i]) continue;
    cuts[i] = {static_cast<int>(slab.counts.size()), lengths[i]};
    slab.counts.push_back(shape[i] / lengths[i]);
  }
  if (carried != nullptr) slab.turns = carried->extent / turn;
  WL_RETURN_IF_ERROR(Demand(group, carried, turn, slab).run(cuts));
  WL_RETURN_IF_ERROR(check_no_repeats(group, slab));
  return slab;
}

}  // namespace

std::vector<int64_t> Slab::shift(const Graph& group, NodeId node) const {
  std::vector<int64_t> shift(counts.size() + (turns > 0 ? 1 : 0), 0);
  const std::vector<int64_t> strides = row_major_strides(group.nodes[node].shape);
  for (size_t i = 0; i < cuts[node].size(); ++i)
    if (cuts[node][i].axis >= 0) shift[cuts[node][i].axis] += cuts[node][i].length * strides[i];
  return shift;
}

absl::StatusOr<Slab> slab_of(const Graph& group, const std::vector<int64_t>& lengths, const CarriedAxis* carried,
                             int64_t turn) {
  WL_ASSIGN_OR_RETURN(Slab slab, divided(group, lengths, carried, turn));
  WL_RETURN_IF_ERROR(build(group, slab));
  return slab;
}

std::vector<int64_t> least_lengths(const Graph& group) {
  const Shape& shape = group.nodes[group.outputs[0].node].shape;
  std::vector<int64_t> least = shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    std::vector<int64_t> lengths = shape;
    for (int64_t length = 1; length < shape[i] && least[i] == shape[i]; ++length) {
      if (shape[i] % length != 0) continue;
      lengths[i] = length;
      if (divided(group, lengths).ok()) least[i] = length;
    }
  }
  return least;
}

}  // namespace wl
