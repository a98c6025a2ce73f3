// A second evaluator of graphs, which shares only the scalar functions of ops.def with the oracle. It works with
// coordinates, not index maps, and computes whole tensors, not only the requested elements.
#include <cmath>
#include <functional>

#include "compiler/ir/eval.h"
#include "compiler/ir/ops.h"
#include "random_graph.h"

namespace wl {
namespace {

using Coordinates = std::vector<int64_t>;
using Real = long double;  // holds every integer of 64 bits exactly
using Wide = __int128;

// Returns the integer of the dtype that is congruent to v.
Real wrapped(DType dtype, Wide v) {
  const int64_t bits = wrap(dtype, static_cast<int64_t>(static_cast<uint64_t>(v)));
  return dtype == DType::u64 ? static_cast<Real>(static_cast<uint64_t>(bits)) : static_cast<Real>(bits);
}

// Computes an integer op in 128 bits and wraps the result to the dtype. In a power, every product is wrapped to 64
// bits.
Real integer(Op op, DType dtype, Wide x, Wide y, Wide z) {
  const auto product = [](Wide a, Wide b) {
    return static_cast<Wide>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
  };
  switch (op) {
    case Op::add:
      return wrapped(dtype, x + y);
    case Op::sub:
      return wrapped(dtype, x - y);
    case Op::mul:
      return wrapped(dtype, product(x, y));
    case Op::fma:
      return wrapped(dtype, product(x, y) + z);
    case Op::div:
      return wrapped(dtype, y == 0 ? 0 : x / y);
    case Op::fmod:
      return wrapped(dtype, y == 0 ? 0 : x % y);
    case Op::mod:
      return wrapped(dtype, y == 0 ? 0 : (x % y + y) % y);
    case Op::pow: {
      if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
      Wide power = 1;
      for (; y > 0; y /= 2, x = static_cast<int64_t>(product(x, x)))
        if (y % 2 == 1) power = static_cast<int64_t>(product(power, x));
      return wrapped(dtype, power);
    }
    case Op::neg:
      return wrapped(dtype, -x);
    case Op::abs:
      return wrapped(dtype, x < 0 ? -x : x);
    case Op::sign:
      return (x > 0) - (x < 0);
    case Op::min:
      return std::min(x, y);
    case Op::max:
      return std::max(x, y);
    case Op::bit_and:
      return wrapped(dtype, x & y);
    case Op::bit_or:
      return wrapped(dtype, x | y);
    case Op::bit_xor:
      return wrapped(dtype, x ^ y);
    case Op::shift_left:
      return wrapped(dtype, y < 64 ? x << y : 0);
    case Op::shift_right:
      return wrapped(dtype, y < 64 ? x >> y : 0);
    case Op::eq:
      return x == y;
    case Op::ne:
      return x != y;
    case Op::lt:
      return x < y;
    case Op::le:
      return x <= y;
    case Op::gt:
      return x > y;
    case Op::ge:
      return x >= y;
    case Op::logical_not:
      return x == 0;
    case Op::logical_and:
      return x != 0 && y != 0;
    case Op::logical_or:
      return x != 0 || y != 0;
    case Op::logical_xor:
      return (x != 0) != (y != 0);
    case Op::select:
      return x != 0 ? y : z;
    default:
      return wrapped(dtype, x);  // all other ops but casts have a case above
  }
}

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
  std::vector<std::vector<Real>> values;

  const Shape& shape(const Node& node, int operand) const { return graph.nodes[node.operands[operand]].shape; }
  Real get(const Node& node, int operand, const Coordinates& at) const {
    return values[node.operands[operand]][offset(shape(node, operand), at)];
  }
  // Adds as a kernel does: in the accumulator's dtype, one term after the other.
  Real accumulate(DType dtype, Real sum, Real term) const {
    if (!is_float(dtype)) return wrapped(dtype, static_cast<Wide>(sum) + static_cast<Wide>(term));
    const double result = static_cast<double>(sum) + static_cast<double>(term);
    return rounded && dtype != DType::f64 ? static_cast<float>(result) : result;
  }
  // Returns sum + x * y for integers, without rounding of products that a double cannot hold exactly.
  static Real multiply_add(DType dtype, Real sum, Real x, Real y) {
    return integer(Op::fma, dtype, static_cast<Wide>(x), static_cast<Wide>(y), static_cast<Wide>(sum));
  }
  Real store(DType dtype, Real exact) const {
    if (!is_float(dtype)) return exact;
    const auto value = static_cast<double>(exact);
    const double nearest = is_float(dtype) ? round_to(dtype, value) : value;
    // A value beyond the dtype's largest finite value becomes infinity or, in dtypes without infinity, that largest
    // value.
    const bool beyond = is_float(dtype) && std::fabs(value) > info(dtype).largest;
    return rounded || beyond ? nearest : value;
  }

  Real elementwise(const Node& node, const Coordinates& at) const {
    Real x[3] = {};
    for (size_t i = 0; i < node.operands.size(); ++i) x[i] = get(node, static_cast<int>(i), at);
    const DType from = graph.nodes[node.operands.back()].dtype;
    if (!is_float(node.dtype) && !is_float(from))
      return integer(node.op, node.dtype, static_cast<Wide>(x[0]), static_cast<Wide>(x[1]), static_cast<Wide>(x[2]));
    const double r =
        info(node.op).value(static_cast<double>(x[0]), static_cast<double>(x[1]), static_cast<double>(x[2]));
    return is_float(node.dtype) ? store(node.dtype, r) : to_integer(node.dtype, from, r);
  }

  Real view(const Node& node, Coordinates at) const {
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

  void reduce(const Node& node, std::vector<Real>& out) const {
    const double start[] = {0, -INFINITY, INFINITY, 1};
    double first = start[static_cast<int>(node.op) - static_cast<int>(Op::reduce_sum)];
    if (node.dtype == DType::b1 && node.op == Op::reduce_max) first = 0;
    std::fill(out.begin(), out.end(), is_float(node.dtype) ? first : round_to(node.dtype, first));
    for_each(shape(node, 0), [&](const Coordinates& at) {
      Coordinates kept;
      for (size_t i = 0; i < at.size(); ++i) {
        if (!std::count(node.ints.begin(), node.ints.end(), static_cast<int64_t>(i))) kept.push_back(at[i]);
      }
      Real& total = out[offset(node.shape, kept)];
      const Real x = get(node, 0, at);
      if (node.op == Op::reduce_sum) total = accumulate(node.dtype, total, x);
      if (node.op == Op::reduce_prod)
        total = is_float(node.dtype) ? accumulate(node.dtype, static_cast<double>(total) * static_cast<double>(x), 0)
                                     : multiply_add(node.dtype, 0, total, x);
      const bool nan = std::isnan(x) || std::isnan(total);
      if (node.op == Op::reduce_max && !(total > x)) total = nan ? NAN : x;
      if (node.op == Op::reduce_min && !(total < x)) total = nan ? NAN : x;
    });
    for (Real& v : out) v = store(node.dtype, v);
  }

  void contract(const Node& node, std::vector<Real>& out) const {
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
      Real& total = out[offset(node.shape, select(e.out))];
      const Real a = get(node, 0, select(e.a)), b = get(node, 1, select(e.b));
      total = is_float(node.dtype) ? accumulate(node.dtype, total, static_cast<double>(a) * static_cast<double>(b))
                                   : multiply_add(node.dtype, total, a, b);
    });
    for (Real& v : out) v = store(node.dtype, v);
  }
};

}  // namespace

std::vector<std::vector<double>> eager_outputs(const Graph& graph, uint64_t seed, bool rounded) {
  Eager eager{graph, rounded, {}};
  InputReader read = generated_inputs(graph, seed);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    std::vector<Real> out(static_cast<size_t>(elements(node.shape)), 0);
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
          Real& v = out[i];
          if (node.op == Op::input) v = read(id, i);
          if (node.op == Op::constant) v = node.value;
          if (node.op == Op::iota)
            v = is_float(node.dtype) ? static_cast<double>(at[node.ints[0]])
                                     : to_integer(node.dtype, DType::i64, static_cast<double>(at[node.ints[0]]));
          if (class_of(node.op) == OpClass::kElementwise) v = eager.elementwise(node, at);
          if (class_of(node.op) == OpClass::kView) v = eager.view(node, at);
          if (node.op == Op::take_along) {
            Coordinates to = at;
            const Real index = eager.get(node, 1, at);
            to[node.ints[0]] = static_cast<int64_t>(index) + (index < 0 ? eager.shape(node, 0)[node.ints[0]] : 0);
            v = eager.get(node, 0, to);
          }
          ++i;
        });
    }
    eager.values.push_back(std::move(out));
  }
  std::vector<std::vector<double>> result;
  for (const Output& output : graph.outputs)
    result.emplace_back(eager.values[output.node].begin(), eager.values[output.node].end());
  return result;
}

}  // namespace wl
