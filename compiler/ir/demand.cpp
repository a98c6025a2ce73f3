#include <algorithm>

#include "compiler/ir/evaluator.h"
#include "compiler/ir/rounded_exps.h"

namespace wl {
namespace {

// The most elements of a tensor; a full ElementSet of so many has 16 million pages.
constexpr int64_t kMaxElements = int64_t{1} << 36;
// The most demanded elements of all tensors together; each takes 16 to 24 bytes.
constexpr int64_t kMaxDemanded = int64_t{1} << 30;

// Whether a small change of a float operand can cause a large change of the node's values.
bool has_jumps(const Graph& graph, const Node& node) {
  if (class_of(node.op) != OpClass::kElementwise || !is_float(graph.nodes[node.operands[0]].dtype)) return false;
  return info(node.op).slope == Slope::kJumps || !is_float(node.dtype);
}

}  // namespace

ReduceMaps::ReduceMaps(const Node& node, const Shape& operand) {
  std::vector<int64_t> strides = row_major_strides(operand), kept, reduced;
  Shape reduced_shape;
  for (size_t i = 0; i < operand.size(); ++i) {
    if (std::binary_search(node.ints.begin(), node.ints.end(), static_cast<int64_t>(i))) {
      reduced.push_back(strides[i]);
      reduced_shape.push_back(operand[i]);
    } else {
      kept.push_back(strides[i]);
    }
  }
  outer = IndexMap(node.shape, kept, 0);
  inner = IndexMap(reduced_shape, reduced, 0);
}

ContractMaps::ContractMaps(const Node& node, const Shape& a, const Shape& b) {
  const Einsum e = *parse_einsum(node.text);
  std::vector<int64_t> a_strides = row_major_strides(a), b_strides = row_major_strides(b);
  auto stride = [](const std::string& letters, const std::vector<int64_t>& strides, char letter) {
    size_t at = letters.find(letter);
    return at == std::string::npos ? 0 : strides[at];
  };
  auto map_of = [&](const std::string& letters, const Shape& shape, bool of_a) {
    std::vector<int64_t> strides;
    for (char c : letters) strides.push_back(of_a ? stride(e.a, a_strides, c) : stride(e.b, b_strides, c));
    return IndexMap(shape, strides, 0);
  };
  std::string summed;
  Shape summed_shape;
  for (size_t i = 0; i < e.a.size() + e.b.size(); ++i) {
    char c = i < e.a.size() ? e.a[i] : e.b[i - e.a.size()];
    if (e.out.find(c) != std::string::npos || summed.find(c) != std::string::npos) continue;
    summed += c;
    summed_shape.push_back(i < e.a.size() ? a[i] : b[i - e.a.size()]);
  }
  terms = elements(summed_shape);
  a_row = map_of(e.out, node.shape, true);
  b_row = map_of(e.out, node.shape, false);
  a_step = map_of(summed, summed_shape, true);
  b_step = map_of(summed, summed_shape, false);
}

Origin origin_of(const Graph& graph, const Node& node, int64_t index) {
  std::vector<int64_t> strides = row_major_strides(node.shape), coordinates(node.shape.size());
  for (size_t i = 0; i < strides.size(); ++i) {
    coordinates[i] = index / strides[i];
    index %= strides[i];
  }
  int operand = 0;
  if (node.op == Op::pad) {
    const Shape& inner = graph.nodes[node.operands[0]].shape;
    for (size_t i = 0; i < inner.size(); ++i) {
      coordinates[i] -= node.ints[i];
      if (coordinates[i] < 0 || coordinates[i] >= inner[i]) return {-1, 0};
    }
  } else {
    int64_t& along = coordinates[node.ints[0]];
    while (along >= graph.nodes[node.operands[operand]].shape[node.ints[0]]) {
      along -= graph.nodes[node.operands[operand++]].shape[node.ints[0]];
    }
  }
  std::vector<int64_t> to = row_major_strides(graph.nodes[node.operands[operand]].shape);
  int64_t at = 0;
  for (size_t i = 0; i < to.size(); ++i) at += to[i] * coordinates[i];
  return {operand, at};
}

Picked picked(double index, int64_t extent) {
  if (!(index >= static_cast<double>(-extent))) return {false, 0};
  if (!(index < static_cast<double>(extent))) return {false, extent - 1};
  auto i = static_cast<int64_t>(index);
  return {true, i < 0 ? i + extent : i};
}

int64_t taken_from(const Graph& graph, const Node& node, int64_t i, int64_t pick) {
  const Shape& x = graph.nodes[node.operands[0]].shape;
  size_t axis = static_cast<size_t>(node.ints[0]);
  int64_t inner = 1;
  for (size_t k = axis + 1; k < x.size(); ++k) inner *= x[k];
  int64_t outer = i / (inner * node.shape[axis]);
  return (outer * x[axis] + pick) * inner + i % inner;
}

Evaluator::Evaluator(const Graph& graph, const InputReader& inputs, BeforeJumps before_jumps, Outside outside,
                     Work* work)
    : graph_(graph),
      inputs_(inputs),
      before_jumps_(before_jumps),
      outside_(outside),
      work_(work),
      loose_exps_(rounded_exps(graph)),
      rounded_(graph.nodes.size(), false),
      sets_(graph.nodes.size()),
      columns_(graph.nodes.size()),
      last_user_(graph.nodes.size(), -1) {
  if (before_jumps == BeforeJumps::kExact) return;
  std::vector<bool> decides(graph.nodes.size(), false);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& at = graph.nodes[i];
    rounded_[i] = decides[i] && is_float(at.dtype);
    for (const NodeId operand : at.operands)
      if (decides[i] || has_jumps(graph, at)) decides[operand] = true;
  }
}

ElementSet& Evaluator::set_of(NodeId id) {
  if (!sets_[id]) sets_[id] = std::make_unique<ElementSet>(elements(node(id).shape));
  return *sets_[id];
}

absl::Status Evaluator::demand(const std::vector<Query>& queries) {
  for (size_t id = 0; id < graph_.nodes.size(); ++id) {
    for (NodeId operand : graph_.nodes[id].operands) last_user_[operand] = static_cast<NodeId>(id);
  }
  NodeId last = -1;
  for (const Query& query : queries) {
    if (query.node < 0 || query.node >= static_cast<NodeId>(graph_.nodes.size()))
      return invalid("evaluate: %", query.node, " does not exist");
    int64_t size = elements(node(query.node).shape);
    if (size > kMaxElements)
      return invalid("evaluate: ", type_text(node(query.node).dtype, node(query.node).shape),
                     " is too large for the oracle");
    ElementSet& set = set_of(query.node);
    for (int64_t index : query.indices) {
      if (index < 0 || index >= size)
        return invalid("evaluate: element ", index, " of %", query.node, " is outside [0,", size, ")");
      set.insert(index);
    }
    last_user_[query.node] = static_cast<NodeId>(graph_.nodes.size());
    last = std::max(last, query.node);
  }
  for (NodeId id = last; id >= 0; --id) {
    if (!sets_[id]) continue;
    if (!go_on(work_, kOracleSteps)) return ended(work_);
    sets_[id]->freeze();
    demanded_ += sets_[id]->count();
    if (demanded_ > kMaxDemanded) {
      return absl::ResourceExhaustedError(
          cat("evaluate: more than ", kMaxDemanded, " elements are needed; ask for fewer samples"));
    }
    WL_RETURN_IF_ERROR(propagate(id));
  }
  return absl::OkStatus();
}

absl::Status Evaluator::propagate(NodeId id) {
  const Node& at = node(id);
  const ElementSet& set = *sets_[id];
  for (NodeId operand : at.operands) {
    if (elements(node(operand).shape) > kMaxElements)
      return invalid("evaluate: ", type_text(node(operand).dtype, node(operand).shape), " of %", operand,
                     " is too large for the oracle");
  }
  switch (class_of(at.op)) {
    case OpClass::kLeaf:
      return absl::OkStatus();
    case OpClass::kElementwise:
      for (NodeId operand : at.operands) set_of(operand).insert_all(set);
      return absl::OkStatus();
    case OpClass::kReduce:
      demand_reduce(at, set);
      return absl::OkStatus();
    case OpClass::kContract:
      demand_contract(at, set);
      return absl::OkStatus();
    case OpClass::kGather:
      return demand_take_along(id, set);
    case OpClass::kView:
      break;
  }
  if (at.op == Op::reshape) {
    set_of(at.operands[0]).insert_all(set);
  } else if (at.op == Op::pad || at.op == Op::concat) {
    for (NodeId operand : at.operands) set_of(operand);
    set.for_each([&](int64_t i) {
      Origin origin = origin_of(graph_, at, i);
      if (origin.operand >= 0) sets_[at.operands[origin.operand]]->insert(origin.index);
    });
  } else {
    ElementSet& operand = set_of(at.operands[0]);
    IndexMap map = index_map(at, node(at.operands[0]).shape);
    IndexCursor cursor(map);
    set.for_each([&](int64_t i) { operand.insert(cursor(i)); });
  }
  return absl::OkStatus();
}

namespace {

void insert_steps(ElementSet& set, int64_t base, const IndexMap& step, const std::vector<int64_t>& steps) {
  auto n = static_cast<int64_t>(steps.size());
  if (n > 0 && step.extents.size() == 1 && step.strides[0] == 1) {
    set.insert_range(base, base + n);
  } else {
    for (int64_t s : steps) set.insert(base + s);
  }
}

}  // namespace

void Evaluator::demand_reduce(const Node& at, const ElementSet& set) {
  ElementSet& operand = set_of(at.operands[0]);
  ReduceMaps maps(at, node(at.operands[0]).shape);
  std::vector<int64_t> steps = maps.inner.all();
  IndexCursor cursor(maps.outer);
  set.for_each([&](int64_t i) { insert_steps(operand, cursor(i), maps.inner, steps); });
}

void Evaluator::demand_contract(const Node& at, const ElementSet& set) {
  ContractMaps maps(at, node(at.operands[0]).shape, node(at.operands[1]).shape);
  for (int which = 0; which < 2; ++which) {
    NodeId operand = at.operands[which];
    const IndexMap& row = which == 0 ? maps.a_row : maps.b_row;
    const IndexMap& step = which == 0 ? maps.a_step : maps.b_step;
    if (elements(node(operand).shape) == 0) {
      set_of(operand);
      continue;
    }
    ElementSet rows(elements(node(operand).shape));
    IndexCursor cursor(row);
    set.for_each([&](int64_t i) { rows.insert(cursor(i)); });
    std::vector<int64_t> steps = step.all();
    ElementSet& wanted = set_of(operand);
    rows.for_each([&](int64_t base) { insert_steps(wanted, base, step, steps); });
  }
}

// Demands elements of a take_along's operands, for its demanded elements `set`. Which elements of operand 0 are needed
// depends on the values of the index. These values are computed first, unless computing the index itself takes a
// take_along; all elements of operand 0 along the axis are demanded then.
absl::Status Evaluator::demand_take_along(NodeId id, const ElementSet& set) {
  const Node& at = node(id);
  set_of(at.operands[1]).insert_all(set);
  ElementSet& x = set_of(at.operands[0]);
  int64_t extent = node(at.operands[0]).shape[at.ints[0]];
  std::vector<int64_t> wanted;
  wanted.reserve(static_cast<size_t>(set.count()));
  set.for_each([&](int64_t i) { wanted.push_back(i); });
  if (!cheap_index(at.operands[1])) {
    for (int64_t i : wanted) {
      for (int64_t pick = 0; pick < extent; ++pick) x.insert(taken_from(graph_, at, i, pick));
    }
    return absl::OkStatus();
  }
  WL_ASSIGN_OR_RETURN(auto values,
                      evaluate(graph_, inputs_, {{at.operands[1], wanted}}, before_jumps_, outside_, work_));
  for (size_t k = 0; k < wanted.size(); ++k)
    x.insert(taken_from(graph_, at, wanted[k], picked(values[0][k].value, extent).at));
  return absl::OkStatus();
}

bool Evaluator::cheap_index(NodeId id) const {
  std::vector<char> reached(static_cast<size_t>(id) + 1, 0);
  reached[id] = 1;
  for (NodeId i = id; i >= 0; --i) {
    if (!reached[i]) continue;
    if (node(i).op == Op::take_along) return false;
    for (NodeId operand : node(i).operands) reached[operand] = 1;
  }
  return true;
}

}  // namespace wl
