#include "compiler/ir/rounded_exps.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace wl {
namespace {

bool is_narrow_float(DType dtype) {
  return is_float(dtype) && size_of(dtype) < 4;
}

// Whether the op's result has a relative error that is at most about as large as the relative error of its operand.
bool keeps_relative_errors(const Node& node) {
  switch (class_of(node.op)) {
    case OpClass::kView:
    case OpClass::kContract:
      return true;
    case OpClass::kReduce:
      return node.op == Op::reduce_sum || node.op == Op::reduce_max || node.op == Op::reduce_min;
    case OpClass::kElementwise:
      return node.op == Op::mul || node.op == Op::div || node.op == Op::neg || node.op == Op::abs ||
             node.op == Op::max || node.op == Op::min || node.op == Op::select || node.op == Op::rcp ||
             (node.op == Op::cast && is_float(node.dtype));
    default:
      return false;
  }
}

}  // namespace

std::vector<bool> rounded_exps(const Graph& graph) {
  // rounded[id]: whether, on every path to an output, the value is rounded to a narrow float and until then passes only
  // ops that keep relative errors. The users of a node come after it in the graph, so the loop runs backwards.
  std::vector<bool> rounded(graph.nodes.size(), true);
  for (const Output& output : graph.outputs)
    if (!is_narrow_float(graph.nodes[output.node].dtype)) rounded[output.node] = false;
  for (size_t id = graph.nodes.size(); id-- > 0;) {
    const Node& node = graph.nodes[id];
    if (is_narrow_float(node.dtype) || (rounded[id] && keeps_relative_errors(node))) continue;
    for (const NodeId operand : node.operands) rounded[operand] = false;
  }
  std::vector<bool> out(graph.nodes.size(), false);
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    const bool is_exp = node.op == Op::exp && node.dtype != DType::f64;
    out[id] = is_exp && (is_narrow_float(node.dtype) || rounded[id]);
  }
  return out;
}

bool rounds_all_exps(const Graph& graph) {
  const std::vector<bool> rounded = rounded_exps(graph);
  bool any = false, all = true;
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    if (graph.nodes[id].op != Op::exp) continue;
    any = true;
    all = all && rounded[id];
  }
  return any && all;
}

double error_of_rounded_exp(double x, double value) {
  constexpr double kUnit = 0x1p-24;  // unit roundoff of f32
  if (!std::isfinite(x) || !std::isfinite(value)) return 0;
  // The terms of this bound: 1.5 |x| covers the roundings of the constant log2(e) and of its product with x; 4 covers
  // an error of two units in the last place of the exp instruction; the smallest normal number covers results that are
  // flushed to 0.
  return (1.5 * std::fabs(x) + 4) * kUnit * std::fabs(value) + static_cast<double>(std::numeric_limits<float>::min());
}

}  // namespace wl
