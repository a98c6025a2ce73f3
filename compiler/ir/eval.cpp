#include "compiler/ir/eval.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/ir/evaluator.h"
#include "compiler/ir/ops.h"
#include "compiler/ir/rounded_exps.h"

namespace wl {

InputReader generated_inputs(const Graph& graph, uint64_t seed) {
  struct Stream {
    Fill fill;
    DType dtype;
    uint64_t number;
  };
  std::vector<Stream> streams(graph.nodes.size());
  uint64_t number = 0;
  for (NodeId id : graph.inputs()) streams[id] = {graph.nodes[id].fill, graph.nodes[id].dtype, number++};
  return [streams = std::move(streams), seed](NodeId input, int64_t index) {
    const Stream& s = streams[input];
    return fill_value(s.fill, s.dtype, seed, s.number, static_cast<uint64_t>(index));
  };
}

absl::Status Evaluator::compute() {
  for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
    if (!sets_[id]) continue;
    if (!go_on(work_, kOracleSteps)) return ended(work_);
    WL_RETURN_IF_ERROR(compute_node(id));
    if (rounded_[id])
      for (double& value : columns_[id].value) value = round_to(node(id).dtype, value);
    for (NodeId operand : node(id).operands) {
      if (last_user_[operand] == id) columns_[operand] = Column();
    }
  }
  return absl::OkStatus();
}

absl::Status Evaluator::compute_node(NodeId id) {
  const Node& at = node(id);
  const ElementSet& set = *sets_[id];
  Column& out = columns_[id];
  out.resize(static_cast<size_t>(set.count()), at.dtype);
  switch (class_of(at.op)) {
    case OpClass::kLeaf:
      compute_leaf(id, out);
      break;
    case OpClass::kElementwise:
      compute_elementwise(id, set, out);
      break;
    case OpClass::kView:
      compute_view(at, set, out);
      break;
    case OpClass::kReduce:
      compute_reduce(at, set, out);
      break;
    case OpClass::kContract:
      compute_contract(at, set, out);
      break;
    case OpClass::kGather:
      return compute_take_along(id, set, out);
  }
  return absl::OkStatus();
}

void Evaluator::compute_leaf(NodeId id, Column& out) {
  const Node& at = node(id);
  const auto given = [&](double value) {
    return Estimate{value, 0, 0, is_float(at.dtype) ? 0 : bits_of(at.dtype, value)};
  };
  size_t k = 0;
  if (at.op == Op::constant) {
    for (const Estimate value = given(at.value); k < out.value.size(); ++k) out.put(k, value);
    return;
  }
  if (at.op == Op::input) {
    sets_[id]->for_each([&](int64_t i) { out.put(k++, given(inputs_(id, i))); });
    return;
  }
  int64_t inner = row_major_strides(at.shape)[at.ints[0]], extent = at.shape[at.ints[0]];
  Rounding rounding(at.dtype);
  sets_[id]->for_each([&](int64_t i) {
    auto coordinate = static_cast<double>(i / inner % extent);
    double value = rounding.floating ? round_to(at.dtype, coordinate) : to_integer(at.dtype, DType::i64, coordinate);
    out.put(k++, {value});
  });
}

void Evaluator::compute_elementwise(NodeId id, const ElementSet& set, Column& out) {
  const Node& at = node(id);
  int arity = info(at.op).arity;
  Elementwise apply(at.op, node(at.operands[at.op == Op::select ? 1 : 0]).dtype, at.dtype);
  bool same[3] = {};  // for each operand: whether the same elements are demanded of it as of this node
  for (int j = 0; j < arity; ++j) same[j] = sets_[at.operands[j]]->count() == set.count();
  size_t k = 0;
  set.for_each([&](int64_t i) {
    Estimate x[3];
    for (int j = 0; j < arity; ++j) {
      const Column& column = columns_[at.operands[j]];
      x[j] = column.at(same[j] ? k : static_cast<size_t>(sets_[at.operands[j]]->position(i)));
    }
    Estimate value = apply(x);
    if (loose_exps_[id]) value.add_error(error_of_rounded_exp(x[0].value, value.value));
    out.put(k++, value);
  });
}

void Evaluator::compute_view(const Node& at, const ElementSet& set, Column& out) {
  size_t k = 0;
  if (at.op == Op::pad || at.op == Op::concat) {
    set.for_each([&](int64_t i) {
      Origin origin = origin_of(graph_, at, i);
      const Estimate around{at.value, 0, 0, is_float(at.dtype) ? 0 : bits_of(at.dtype, at.value)};
      out.put(k++, origin.operand < 0 ? around : element(at.operands[origin.operand], origin.index));
    });
    return;
  }
  const Column& from = columns_[at.operands[0]];
  const ElementSet& positions = *sets_[at.operands[0]];
  auto copy = [&](int64_t index) {
    auto p = static_cast<size_t>(positions.position(index));
    out.value[k] = from.value[p];
    if (!out.whole.empty()) out.whole[k] = from.whole[p];
    out.worst[k] = from.worst[p];
    out.spread[k++] = from.spread[p];
  };
  if (at.op == Op::reshape) {
    set.for_each(copy);
  } else {
    IndexMap map = index_map(at, node(at.operands[0]).shape);
    IndexCursor cursor(map);
    set.for_each([&](int64_t i) { copy(cursor(i)); });
  }
}

namespace {

// The running state of a reduction of values, each with its error.
struct Accumulator {
  Accumulator(Op which, DType type) : op(which), dtype(type), floating(is_float(type)) {
    const double infinity = std::numeric_limits<double>::infinity();
    if (op == Op::reduce_sum) value = 0;
    if (op == Op::reduce_prod) value = upper = 1;
    if (op == Op::reduce_max) value = floating ? -infinity : dtype == DType::b1 ? 0 : round_to(dtype, -infinity);
    if (op == Op::reduce_min) value = floating ? infinity : round_to(dtype, infinity);
    if (!floating) whole = bits_of(dtype, value);
  }
  // Adds one more integer to the accumulator. `x` has the bits of the integer, and `w` is its worst-case error.
  void add(int64_t x, float w) {
    const int64_t both[3] = {whole, x, 0};
    whole = integer_result(combine_of(op), dtype, dtype, both);
    worst = op == Op::reduce_sum ? worst + w : std::max<double>(worst, w);
  }
  void add(double x, float w, float s) {
    switch (op) {
      case Op::reduce_sum:
        value += x;
        magnitude += std::fabs(x);
        worst += w;
        squares += static_cast<double>(s) * s;
        break;
      case Op::reduce_prod:
        value *= x;
        upper *= std::fabs(x) + w;
        worst = std::max<double>(worst, w);
        break;
      default:
        value = op == Op::reduce_max ? nan_max(value, x) : nan_min(value, x);
        worst = std::max<double>(worst, w);
        spread = std::max<double>(spread, s);
    }
  }
  Estimate result(int64_t n) const {
    if (!floating) {
      Estimate exact = whole_number(dtype, whole);
      const bool unknown = op == Op::reduce_prod && worst > 0;
      exact.worst = exact.spread = unknown ? std::numeric_limits<double>::infinity() : worst;
      return exact;
    }
    if (op == Op::reduce_max || op == Op::reduce_min)
      return n == 0 ? Rounding(dtype).stored({value}) : Estimate{value, worst, spread};
    if (!std::isfinite(value)) return {value, std::isfinite(worst) ? 0 : worst, std::isfinite(worst) ? 0 : worst};
    const SumErrors errors(dtype, n);
    if (op == Op::reduce_sum) return errors.result(value, worst, squares, magnitude);
    double error = (worst > 0 ? upper - std::fabs(value) : 0) + errors.worst_factor * upper;
    if (floating) error += errors.rounding.unit * std::fabs(value) + errors.rounding.tiny;
    return errors.rounding.stored({value, error, error});
  }
  Op op;
  DType dtype;
  bool floating;
  double value = 0, worst = 0, spread = 0, squares = 0, magnitude = 0, upper = 0;
  int64_t whole = 0;  // if the result is an integer, its bits
};

}  // namespace

void Evaluator::compute_reduce(const Node& at, const ElementSet& set, Column& out) {
  const Column& from = columns_[at.operands[0]];
  const ElementSet& positions = *sets_[at.operands[0]];
  ReduceMaps maps(at, node(at.operands[0]).shape);
  std::vector<int64_t> steps = maps.inner.all();
  IndexCursor cursor(maps.outer);
  size_t k = 0;
  set.for_each([&](int64_t i) {
    int64_t base = cursor(i);
    Accumulator total(at.op, at.dtype);
    for (int64_t step : steps) {
      auto p = static_cast<size_t>(positions.position(base + step));
      if (total.floating)
        total.add(from.value[p], from.worst[p], from.spread[p]);
      else
        total.add(bits_of(from.at(p)), from.worst[p]);
    }
    out.put(k++, total.result(static_cast<int64_t>(steps.size())));
  });
}

absl::Status Evaluator::compute_take_along(NodeId id, const ElementSet& set, Column& out) {
  const Node& at = node(id);
  int64_t extent = node(at.operands[0]).shape[at.ints[0]];
  size_t k = 0;
  absl::Status status;
  set.for_each([&](int64_t i) {
    Estimate index = element(at.operands[1], i);
    const Picked pick = picked(index.value, extent);
    if (!pick.inside && index.worst == 0 && status.ok() && outside_ == Outside::kError) {
      status = absl::OutOfRangeError(cat("%", id, " = take_along: index ", index.value, " of element ", i,
                                         " is outside [", -extent, ",", extent, ")"));
    }
    Estimate taken = element(at.operands[0], taken_from(graph_, at, i, pick.at));
    // If the index has an error, a kernel may select any element, so the element selected here gets an infinite error.
    if (index.worst != 0) taken.worst = taken.spread = std::numeric_limits<double>::infinity();
    out.put(k++, taken);
  });
  return status;
}

std::vector<Value> Evaluator::read(const Query& query) const {
  std::vector<Value> values;
  values.reserve(query.indices.size());
  for (int64_t index : query.indices) {
    Estimate e = element(query.node, index);
    values.push_back({e.value, e.bound(), is_float(node(query.node).dtype) ? 0 : bits_of(e)});
  }
  return values;
}

absl::StatusOr<std::vector<std::vector<Value>>> evaluate(const Graph& graph, const InputReader& inputs,
                                                         const std::vector<Query>& queries) {
  return evaluate(graph, inputs, queries, BeforeJumps::kExact);
}

absl::StatusOr<std::vector<std::vector<Value>>> evaluate(const Graph& graph, const InputReader& inputs,
                                                         const std::vector<Query>& queries, BeforeJumps before_jumps,
                                                         Outside outside, Work* work) {
  Evaluator evaluator(graph, inputs, before_jumps, outside, work);
  WL_RETURN_IF_ERROR(evaluator.demand(queries));
  WL_RETURN_IF_ERROR(evaluator.compute());
  std::vector<std::vector<Value>> result;
  result.reserve(queries.size());
  for (const Query& query : queries) result.push_back(evaluator.read(query));
  return result;
}

}  // namespace wl
