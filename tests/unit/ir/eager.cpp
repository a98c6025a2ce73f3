// An evaluator that shares only the scalar functions of ops.def with the oracle. It uses coordinates instead of index
// maps, and computes whole tensors instead of demanded elements.
#include <cmath>
#include <functional>

#include "compiler/ir/eval.h"
#include "compiler/ir/ops.h"
#include "random_graph.h"

namespace wl {
namespace {

using Coordinates = std::vector<int64_t>;

void for_each(const Shape& shape, const std::function<void(const Coordinates&)>& visit) {
  Coordinates at(shape.size(), 0);
  for (int64_t n = elements(shape); n > 0; --n) {
    visit(at);
    for (size_t i = shape.size(); i-- > 0;) {
      if (++at[i] < shape[i]) break;
      at[i] = 0;
    }
  }
}

int64_t offset(const Shape& shape, const Coordinates& at) {
  int64_t result = 0;
  for (size_t i = 0; i < shape.size(); ++i) result = result * shape[i] + at[i];
  return result;
}

struct Eager {
  const Graph& graph;
  bool rounded;
  std::vector<std::vector<double>> values;

  const Shape& shape(const Node& node, int operand) const { return graph.nodes[node.operands[operand]].shape; }
  double get(const Node& node, int operand, const Coordinates& at) const {
    return values[node.operands[operand]][offset(shape(node, operand), at)];
  }
  // Adds as a kernel does: in the accumulator's dtype, one term after the other.
  double accumulate(DType dtype, double sum, double term) const {
    double result = sum + term;
    if (is_float(dtype)) return rounded && dtype != DType::f64 ? static_cast<float>(result) : result;
    return to_integer(dtype, DType::i64, result);
  }
  // Returns sum + x * y, where the product may exceed a double.
  static double multiply_add(DType dtype, double sum, double x, double y) {
    auto bits = [](double v) { return static_cast<uint64_t>(as_integer(v)); };
    const int64_t total = wrap(dtype, static_cast<int64_t>(bits(x) * bits(y) + bits(sum)));
    return dtype == DType::u64 ? static_cast<double>(static_cast<uint64_t>(total)) : static_cast<double>(total);
  }
  double store(DType dtype, double value) const {
    const double nearest = is_float(dtype) ? round_to(dtype, value) : value;
    // the value becomes infinity, or saturates
    const bool beyond = is_float(dtype) && std::fabs(value) > info(dtype).largest;
    return rounded || beyond ? nearest : value;
  }

  double elementwise(const Node& node, const Coordinates& at) const {
    double x[3] = {};
    for (size_t i = 0; i < node.operands.size(); ++i) x[i] = get(node, static_cast<int>(i), at);
    double r = info(node.op).value(x[0], x[1], x[2]);
    if (is_float(node.dtype)) return store(node.dtype, r);
    // Undefined results, for which the oracle's bound is infinite.
    const bool divides = node.op == Op::div || node.op == Op::mod || node.op == Op::fmod;
    if ((divides && x[1] == 0) || (node.op == Op::pow && x[0] == 0 && x[1] < 0)) return 0;
    if (node.op == Op::mul || node.op == Op::fma) return multiply_add(node.dtype, x[2], x[0], x[1]);
    return to_integer(node.dtype, node.op == Op::cast ? graph.nodes[node.operands[0]].dtype : DType::i64, r);
  }

  double view(const Node& node, Coordinates at) const {
    const Shape& from = shape(node, 0);
    Coordinates to(from.size());
    switch (node.op) {
      case Op::reshape:
        return values[node.operands[0]][offset(node.shape, at)];
      case Op::transpose:
        for (size_t i = 0; i < to.size(); ++i) to[node.ints[i]] = at[i];
        break;
      case Op::broadcast:
        for (size_t i = 0; i < to.size(); ++i) to[i] = at[node.ints[i]];
        break;
      case Op::slice:
        for (size_t i = 0; i < to.size(); ++i) to[i] = node.ints[i] + at[i] * node.ints2[i];
        break;
      case Op::pad:
        for (size_t i = 0; i < to.size(); ++i) {
          to[i] = at[i] - node.ints[i];
          if (to[i] < 0 || to[i] >= from[i]) return node.value;
        }
        break;
      case Op::concat: {
        int operand = 0;
        for (int64_t& along = at[node.ints[0]]; along >= shape(node, operand)[node.ints[0]]; ++operand)
          along -= shape(node, operand)[node.ints[0]];
        return get(node, operand, at);
      }
      default:
        for (size_t i = 0; i < to.size(); ++i) to[i] = at[i];
        for (size_t i = 0; i < node.ints.size(); ++i) {
          to[node.ints[i]] = at[node.ints[i]] * node.ints2[3 * i + 1] + at[from.size() + i] * node.ints2[3 * i + 2];
        }
    }
    return get(node, 0, to);
  }

  void reduce(const Node& node, std::vector<double>& out) const {
    const double start[] = {0, -INFINITY, INFINITY, 1};
    double first = start[static_cast<int>(node.op) - static_cast<int>(Op::reduce_sum)];
    if (node.dtype == DType::b1 && node.op == Op::reduce_max) first = 0;
    std::fill(out.begin(), out.end(), is_float(node.dtype) ? first : round_to(node.dtype, first));
    for_each(shape(node, 0), [&](const Coordinates& at) {
      Coordinates kept;
      for (size_t i = 0; i < at.size(); ++i) {
        if (!std::count(node.ints.begin(), node.ints.end(), static_cast<int64_t>(i))) kept.push_back(at[i]);
      }
      double& total = out[offset(node.shape, kept)];
      double x = get(node, 0, at);
      if (node.op == Op::reduce_sum) total = accumulate(node.dtype, total, x);
      if (node.op == Op::reduce_prod)
        total = is_float(node.dtype) ? accumulate(node.dtype, total * x, 0) : multiply_add(node.dtype, 0, total, x);
      if (node.op == Op::reduce_max) total = nan_max(total, x);
      if (node.op == Op::reduce_min) total = nan_min(total, x);
    });
    for (double& v : out) v = store(node.dtype, v);
  }

  void contract(const Node& node, std::vector<double>& out) const {
    Einsum e = *parse_einsum(node.text);
    std::string letters = e.a;
    Shape extents = shape(node, 0);
    for (size_t i = 0; i < e.b.size(); ++i) {
      if (letters.find(e.b[i]) != std::string::npos) continue;
      letters += e.b[i];
      extents.push_back(shape(node, 1)[i]);
    }
    for_each(extents, [&](const Coordinates& at) {
      auto select = [&](const std::string& list) {
        Coordinates result;
        for (char c : list) result.push_back(at[letters.find(c)]);
        return result;
      };
      double& total = out[offset(node.shape, select(e.out))];
      const double a = get(node, 0, select(e.a)), b = get(node, 1, select(e.b));
      total = is_float(node.dtype) ? accumulate(node.dtype, total, a * b) : multiply_add(node.dtype, total, a, b);
    });
    for (double& v : out) v = store(node.dtype, v);
  }
};

}  // namespace

std::vector<std::vector<double>> eager_outputs(const Graph& graph, uint64_t seed, bool rounded) {
  Eager eager{graph, rounded, {}};
  InputReader read = generated_inputs(graph, seed);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    std::vector<double> out(static_cast<size_t>(elements(node.shape)), 0);
    int64_t i = 0;
    switch (class_of(node.op)) {
      case OpClass::kReduce:
        eager.reduce(node, out);
        break;
      case OpClass::kContract:
        eager.contract(node, out);
        break;
      default:
        for_each(node.shape, [&](const Coordinates& at) {
          double& v = out[i];
          if (node.op == Op::input) v = read(id, i);
          if (node.op == Op::constant) v = node.value;
          if (node.op == Op::iota)
            v = is_float(node.dtype) ? static_cast<double>(at[node.ints[0]])
                                     : to_integer(node.dtype, DType::i64, static_cast<double>(at[node.ints[0]]));
          if (class_of(node.op) == OpClass::kElementwise) v = eager.elementwise(node, at);
          if (class_of(node.op) == OpClass::kView) v = eager.view(node, at);
          if (node.op == Op::take_along) {
            Coordinates to = at;
            double index = eager.get(node, 1, at);
            to[node.ints[0]] = static_cast<int64_t>(index) + (index < 0 ? eager.shape(node, 0)[node.ints[0]] : 0);
            v = eager.get(node, 0, to);
          }
          ++i;
        });
    }
    eager.values.push_back(std::move(out));
  }
  std::vector<std::vector<double>> result;
  for (const Output& output : graph.outputs) result.push_back(eager.values[output.node]);
  return result;
}

}  // namespace wl
