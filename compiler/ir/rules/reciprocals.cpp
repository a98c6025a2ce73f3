// Finds divisors whose reciprocals do not overflow, because none of their values is a denormal.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/ir/rules/internal.h"

namespace wl::rule {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double least_normal(DType dtype) {
  return info(dtype).smallest / (2 * info(dtype).unit_roundoff);
}

class Divisors {
 public:
  explicit Divisors(const Builder& to) : to_(to) {}

  bool are_normal(NodeId id) {
    if (++looked_at_ > kMostNodes) return false;
    const Node& at = to_.node(id);
    if (!is_float(at.dtype)) return true;  // an integer that is cast to a float is 0 or a normal number
    const auto operand_is = [&](size_t k) { return are_normal(at.operands[k]); };
    switch (at.op) {
      case Op::constant:
        return at.value == 0 || std::fabs(at.value) >= least_normal(at.dtype);
      case Op::sqrt:  // the square root of the smallest denormal is a normal number
        return size_of(at.dtype) > 2 || at.dtype == DType::bf16;
      case Op::cast: {
        const DType from = to_.node(at.operands[0]).dtype;
        return operand_is(0) || !is_float(from) || info(from).smallest >= least_normal(at.dtype);
      }
      case Op::abs:
      case Op::neg:
      case Op::reduce_max:
      case Op::reduce_min:
      case Op::take_along:
        return operand_is(0);
      case Op::max:
      case Op::min:
        if (operand_is(0) && operand_is(1)) return true;
        break;
      case Op::select:
        return is_normal_select(at);
      default:
        if (class_of(at.op) == OpClass::kView && at.op != Op::pad)
          return std::all_of(at.operands.begin(), at.operands.end(), [this](NodeId k) { return are_normal(k); });
    }
    if (is_sum_of_powers(at, -1)) return true;
    return least(id, 0) >= least_normal(at.dtype);
  }

 private:
  static constexpr int kMostNodes = 64;
  static constexpr int kMostDeep = 8;

  NodeId without_casts(NodeId id) const {
    while (to_.node(id).op == Op::cast && is_float(to_.node(to_.node(id).operands[0]).dtype))
      id = to_.node(id).operands[0];
    return id;
  }

  // Whether neither value that a select chooses between is a denormal. A softmax whose rows may be empty divides by
  // select(empty, 1, sum). This uses `sum` only for rows that are not empty, so only their `sum` must satisfy
  // is_sum_of_powers().
  bool is_normal_select(const Node& at) {
    return are_normal(at.operands[1]) &&
           (is_sum_of_powers(to_.node(at.operands[2]), at.operands[0]) || are_normal(at.operands[2]));
  }

  // Whether `sum` is the sum of exp(x - max(x)) over the axes of the maximum; such a sum is at least 1 or NaN. `not_so`
  // is the condition of a select that may replace the maximum by another value where the condition holds; -1: there is
  // no such select.
  bool is_sum_of_powers(const Node& sum, NodeId not_so) const {
    if (sum.op != Op::reduce_sum) return false;
    const Node& exp = to_.node(without_casts(sum.operands[0]));
    if (exp.op != Op::exp) return false;
    const Node& difference = to_.node(without_casts(exp.operands[0]));
    if (difference.op != Op::sub) return false;
    const Node& wide = to_.node(difference.operands[1]);
    if (wide.op != Op::broadcast) return false;
    NodeId most = without_casts(wide.operands[0]);
    if (to_.node(most).op == Op::select && to_.node(most).operands[0] == not_so) most = to_.node(most).operands[2];
    const Node& maximum = to_.node(without_casts(most));
    if (maximum.op != Op::reduce_max || maximum.operands[0] != difference.operands[0]) return false;
    // From each element, the maximum of the element's own row must be subtracted.
    std::vector<int64_t> kept;
    for (int64_t axis = 0; axis < static_cast<int64_t>(wide.shape.size()); ++axis) {
      if (std::find(sum.ints.begin(), sum.ints.end(), axis) == sum.ints.end()) kept.push_back(axis);
    }
    return maximum.ints == sum.ints && wide.ints == kept;
  }

  // Returns a number such that no value of the node, except NaN, lies below it.
  double least(NodeId id, int depth) const {
    const Node& at = to_.node(id);
    if (depth > kMostDeep || !is_float(at.dtype)) return at.dtype == DType::b1 ? 0 : -kInfinity;
    const auto of = [&](size_t k) { return least(at.operands[k], depth + 1); };
    switch (at.op) {
      case Op::constant:
        return std::isnan(at.value) ? kInfinity : at.value;
      case Op::exp:
      case Op::abs:
      case Op::sqrt:
      case Op::rsqrt:
      case Op::sigmoid:
        return 0;
      case Op::add:
        return of(0) + of(1);
      case Op::max:
        return std::max(of(0), of(1));
      case Op::min:
        return std::min(of(0), of(1));
      case Op::select:
        return std::min(of(1), of(2));
      case Op::mul: {
        if (at.operands[0] == at.operands[1]) return 0;
        const double a = of(0), b = of(1);
        return a >= 0 && b >= 0 ? (a > 0 && b > 0 ? round_to(at.dtype, a * b) : 0) : -kInfinity;
      }
      case Op::div:
        return of(0) >= 0 && of(1) >= 0 ? 0 : -kInfinity;
      case Op::reduce_sum:
        return of(0) >= 0 ? 0 : -kInfinity;
      case Op::reduce_max:
      case Op::reduce_min:
        return of(0);
      case Op::cast:
        return round_to(at.dtype, of(0));
      default:
        return class_of(at.op) == OpClass::kView && at.op != Op::pad && at.operands.size() == 1 ? of(0) : -kInfinity;
    }
  }

  const Builder& to_;
  int looked_at_ = 0;
};

}  // namespace

bool has_finite_reciprocal(const Builder& to, NodeId id) {
  return Divisors(to).are_normal(id);
}

}  // namespace wl::rule
