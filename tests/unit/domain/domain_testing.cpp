#include "tests/unit/domain/domain_testing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "compiler/cover/cover.h"
#include "compiler/cover/packing.h"
#include "compiler/domain/pack.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

using Values = std::vector<double>;

double input_value(const Node& input, NodeId id, int64_t index) {
  return fill_value(input.fill, input.dtype, 7, static_cast<uint64_t>(id), static_cast<uint64_t>(index));
}

Shape coordinates(int64_t index, const Shape& shape) {
  Shape at(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    at[i] = index % shape[i];
    index /= shape[i];
  }
  return at;
}

int64_t index_of(const Shape& at, const Shape& shape) {
  int64_t index = 0;
  for (size_t i = 0; i < shape.size(); ++i) index = index * shape[i] + at[i];
  return index;
}

double combine(Op op, double a, double b) {
  return op == Op::reduce_max    ? std::fmax(a, b)
         : op == Op::reduce_min  ? std::fmin(a, b)
         : op == Op::reduce_prod ? a * b
                                 : a + b;
}

double identity(Op op) {
  return op == Op::reduce_max ? -INFINITY : op == Op::reduce_min ? INFINITY : op == Op::reduce_prod ? 1 : 0;
}

// Returns which operand of a view an element comes from and the element's index there. Operand -1 means the value of a
// pad.
std::pair<int, int64_t> viewed_element(const Graph& graph, const Node& view, int64_t index) {
  const Shape& from = graph.nodes[view.operands[0]].shape;
  const Shape at = coordinates(index, view.shape);
  Shape to(from.size());
  switch (view.op) {
    case Op::reshape:
      return {0, index};
    case Op::pad:
      for (size_t i = 0; i < from.size(); ++i) {
        to[i] = at[i] - view.ints[i];
        if (to[i] < 0 || to[i] >= from[i]) return {-1, 0};
      }
      break;
    case Op::concat: {
      int operand = 0;
      to = at;
      const auto shape = [&] { return graph.nodes[view.operands[operand]].shape; };
      while (to[view.ints[0]] >= shape()[view.ints[0]]) to[view.ints[0]] -= shape()[view.ints[0]], ++operand;
      return {operand, index_of(to, shape())};
    }
    case Op::transpose:
      for (size_t i = 0; i < at.size(); ++i) to[view.ints[i]] = at[i];
      break;
    case Op::broadcast:
      for (size_t i = 0; i < from.size(); ++i) to[i] = at[view.ints[i]];
      break;
    case Op::slice:
      for (size_t i = 0; i < from.size(); ++i) to[i] = view.ints[i] + at[i] * view.ints2[i];
      break;
    case Op::window:
      for (size_t i = 0; i < from.size(); ++i) to[i] = at[i];
      for (size_t i = 0; i < view.ints.size(); ++i) {
        int64_t& x = to[view.ints[i]];
        x = x * view.ints2[3 * i + 1] + at[from.size() + i] * view.ints2[3 * i + 2];
      }
      break;
    default:
      ADD_FAILURE() << "no reference for view " << name_of(view.op);
  }
  return {0, index_of(to, from)};
}

}  // namespace

// Computes every element of every node from the definitions of the ops.
std::vector<std::vector<double>> reference(const Graph& graph, const InputValues& inputs) {
  std::vector<Values> all(graph.nodes.size());
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    Values& out = all[id];
    out.assign(elements(node.shape), node.op == Op::constant ? node.value : 0);
    const auto operand = [&](size_t k) -> const Node& { return graph.nodes[node.operands[k]]; };
    if (class_of(node.op) == OpClass::kReduce) {
      out.assign(out.size(), identity(node.op));
      for (int64_t i = 0; i < elements(operand(0).shape); ++i) {
        const Shape at = coordinates(i, operand(0).shape);
        Shape kept;
        for (size_t a = 0; a < at.size(); ++a)
          if (!std::count(node.ints.begin(), node.ints.end(), static_cast<int64_t>(a))) kept.push_back(at[a]);
        double& sum = out[index_of(kept, node.shape)];
        sum = combine(node.op, sum, all[node.operands[0]][i]);
      }
      continue;
    }
    if (node.op == Op::contract) {
      const Einsum e = *parse_einsum(node.text);
      for (int64_t i = 0; i < elements(operand(0).shape); ++i)
        for (int64_t j = 0; j < elements(operand(1).shape); ++j) {
          const Shape a = coordinates(i, operand(0).shape), b = coordinates(j, operand(1).shape);
          std::map<char, int64_t> at;
          bool same = true;
          for (size_t x = 0; x < a.size(); ++x) same = at.emplace(e.a[x], a[x]).first->second == a[x] && same;
          for (size_t x = 0; x < b.size(); ++x) same = at.emplace(e.b[x], b[x]).first->second == b[x] && same;
          if (!same) continue;
          Shape o;
          for (char c : e.out) o.push_back(at[c]);
          out[index_of(o, node.shape)] += all[node.operands[0]][i] * all[node.operands[1]][j];
        }
      continue;
    }
    for (int64_t i = 0; i < static_cast<int64_t>(out.size()); ++i) {
      switch (class_of(node.op)) {
        case OpClass::kLeaf:
          if (node.op == Op::input) out[i] = inputs ? inputs(id, i) : input_value(node, id, i);
          if (node.op == Op::iota) out[i] = static_cast<double>(coordinates(i, node.shape)[node.ints[0]]);
          break;
        case OpClass::kView: {
          const auto [from, element] = viewed_element(graph, node, i);
          out[i] = from < 0 ? node.value : all[node.operands[from]][element];
          break;
        }
        case OpClass::kGather: {
          Shape at = coordinates(i, node.shape);
          int64_t index = static_cast<int64_t>(all[node.operands[1]][i]);
          const int64_t extent = operand(0).shape[node.ints[0]];
          at[node.ints[0]] = index < 0 ? index + extent : index;
          out[i] = all[node.operands[0]][index_of(at, operand(0).shape)];
          break;
        }
        default: {
          double x[3] = {0, 0, 0};
          for (size_t k = 0; k < node.operands.size(); ++k) x[k] = all[node.operands[k]][i];
          out[i] = info(node.op).value(x[0], x[1], x[2]);
        }
      }
    }
  }
  return all;
}

namespace {

// Computes every element of every node by the loops and addresses of a Domain.
class Loops {
 public:
  Loops(const Graph& graph, const Domain& domain) : graph_(graph), domain_(domain), memo_(graph.nodes.size()) {}

  static int64_t address(const Access& access, const Shape& at) {
    int64_t index = access.offset;
    for (size_t i = 0; i < at.size(); ++i) index += access.strides[i] * at[i];
    return index;
  }

  double load(NodeId input, int64_t index) {
    const Node& node = graph_.nodes[input];
    if (index < 0 || index >= elements(node.shape)) {
      error_ = cat("address ", index, " is outside %", input);
      return 0;
    }
    return input_value(node, input, index);
  }

  static bool holds(const Access& access, const Shape& at) {
    return std::all_of(access.guards.begin(), access.guards.end(), [&](const Guard& guard) {
      int64_t index = guard.offset;
      for (size_t i = 0; i < at.size(); ++i) index += guard.strides[i] * at[i];
      return index >= 0 && index < guard.extent;
    });
  }

  // Returns the value of a stored node or of an operand at one iteration.
  double leaf(const Domain::Operand& operand, const Shape& at) {
    return leaf(operand.source, operand.access, operand.pieces, at);
  }
  double leaf(NodeId source, const Access& access, const std::vector<Piece>& pieces, const Shape& at) {
    for (const Piece& piece : pieces)
      if (holds(piece.access, at)) return piece.constant ? piece.value : leaf(piece.source, piece.access, {}, at);
    if (!pieces.empty()) error_ = "no piece holds";
    if (!pieces.empty()) return 0;
    if (source < 0) return load(access.input, address(access, at));
    const Node& node = graph_.nodes[source];
    if (node.op == Op::constant) return node.value;
    if (node.op == Op::iota) return static_cast<double>(address(access, at));
    return value(source, at);
  }

  double value(NodeId id, const Shape& at) {
    Shape key;
    for (AtomId atom : domain_.varies[id]) key.push_back(at[atom]);
    const auto found = memo_[id].find(key);
    if (found != memo_[id].end()) return found->second;
    const double result = compute(id, at);
    memo_[id][key] = result;
    return result;
  }

  const std::string& error() const { return error_; }

 private:
  double compute(NodeId id, Shape at) {
    const Node& node = graph_.nodes[id];
    const std::vector<Domain::Operand>& operands = domain_.operands[id];
    const OpClass cls = class_of(node.op);
    if (cls == OpClass::kGather) {
      int64_t index = static_cast<int64_t>(leaf(operands[1], at));
      if (index < 0) index += operands[0].gather_extent;
      return load(operands[0].access.input, address(operands[0].access, at) + index * operands[0].gather_stride);
    }
    if (cls == OpClass::kElementwise) {
      double x[3] = {0, 0, 0};
      for (size_t k = 0; k < operands.size(); ++k) x[k] = leaf(operands[k], at);
      return info(node.op).value(x[0], x[1], x[2]);
    }
    double sum = node.op == Op::contract ? 0 : identity(node.op);
    std::vector<AtomId> atoms = domain_.reduced;
    if (elements_summed(id) == 1) atoms.clear();  // a reduction over axes of extent 1 has no loops
    const std::function<void(size_t)> loop = [&](size_t depth) {
      if (depth < atoms.size()) {
        for (at[atoms[depth]] = 0; at[atoms[depth]] < domain_.atoms[atoms[depth]].extent; ++at[atoms[depth]])
          loop(depth + 1);
        return;
      }
      const double x = leaf(operands[0], at);
      sum = node.op == Op::contract ? sum + x * leaf(operands[1], at) : combine(node.op, sum, x);
    };
    loop(0);
    return sum;
  }

  int64_t elements_summed(NodeId id) const {
    const Node& node = graph_.nodes[id];
    if (node.op == Op::contract) return 2;
    int64_t count = 1;
    for (int64_t axis : node.ints) count *= graph_.nodes[node.operands[0]].shape[axis];
    return count;
  }

  const Graph& graph_;
  const Domain& domain_;
  std::vector<std::map<Shape, double>> memo_;
  std::string error_;
};

bool close(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 1e-9 * (1 + std::fabs(a) + std::fabs(b));
}

}  // namespace

Graph graph_of(std::string_view text) {
  absl::StatusOr<Graph> graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << text;
  return graph.ok() ? *graph : Graph();
}

std::string check_domain(const Graph& graph, const Domain& domain) {
  const std::vector<Values> expected = reference(graph);
  Loops loops(graph, domain);
  std::vector<std::vector<int>> written;
  for (const Output& output : graph.outputs) written.emplace_back(elements(graph.nodes[output.node].shape), 0);
  Shape extents;
  for (const Atom& atom : domain.atoms) extents.push_back(atom.extent);
  for (int64_t i = 0; i < elements(extents); ++i) {
    const Shape at = coordinates(i, extents);
    for (const Domain::Store& store : domain.stores) {
      const int64_t index = Loops::address(store.access, at);
      if (index < 0 || index >= static_cast<int64_t>(written[store.output].size()))
        return cat("store ", store.output, " writes element ", index);
      written[store.output][index] = 1;
      const double got = loops.leaf(store.source, store.copy, store.pieces, at);
      const double want = expected[graph.outputs[store.output].node][index];
      if (!loops.error().empty()) return loops.error();
      if (!close(got, want)) return cat("output ", store.output, "[", index, "] is ", got, ", expected ", want);
    }
  }
  // If the reduction is empty, its loop has no iterations, so this walk does not reach the store.
  const bool empty = std::any_of(domain.reduced.begin(), domain.reduced.end(),
                                 [&](AtomId atom) { return domain.atoms[atom].extent == 0; });
  for (size_t o = 0; o < written.size() && !empty; ++o)
    for (size_t i = 0; i < written[o].size(); ++i)
      if (!written[o][i]) return cat("output ", o, "[", i, "] is never written");
  return "";
}

std::string check_cover(const Graph& graph, const Cover& cover) {
  const std::vector<std::vector<double>> whole = reference(graph);
  std::map<NodeId, std::vector<double>> stored;
  for (NodeId input : graph.inputs()) stored[input] = whole[input];
  for (const Group& group : cover.groups) {
    const Graph part = extract(graph, group);
    if (!verify(part).ok()) return cat("not a graph: ", verify(part).message(), "\n", print(part));
    absl::StatusOr<Domain> domain = analyze(part, test_machine());
    if (!domain.ok() && is_unconnected(part)) domain = pack(part, test_machine());
    if (!domain.ok()) return cat("illegal group: ", domain.status().message(), "\n", print(part));
    if (domain->cls == LoopClass::kPacked) {
      for (const Member& member : domain->packed->members)
        if (std::string wrong = check_domain(member.graph, member.domain); !wrong.empty()) return wrong;
    } else if (std::string wrong = check_domain(part, *domain); !wrong.empty()) {
      return wrong;
    }
    for (NodeId read : group.reads)
      if (!stored.contains(read)) return cat("%", read, " is read before it is stored");
    const std::vector<std::vector<double>> values =
        reference(part, [&](NodeId input, int64_t index) { return stored[group.reads[input]][index]; });
    for (size_t i = 0; i < group.stores.size(); ++i) stored[group.stores[i]] = values[part.outputs[i].node];
  }
  for (const Output& output : graph.outputs) {
    if (!stored.contains(output.node)) return cat("output %", output.node, " is never stored");
    for (size_t i = 0; i < whole[output.node].size(); ++i) {
      const double got = stored[output.node][i], want = whole[output.node][i];
      if (std::fabs(got - want) > 1e-9 * (1 + std::fabs(want)))
        return cat("output %", output.node, "[", i, "] is ", got, ", expected ", want);
    }
  }
  return "";
}

}  // namespace wl
