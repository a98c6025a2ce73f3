#include <cmath>
#include <functional>
#include <map>

#include "compiler/library/product.h"

namespace wl {
namespace {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

struct Row {
  Activation what;
  // The function that a row describes: `value` returns its value at x, given its parameters alpha and beta. The
  // functions `alpha` and `beta` compute these parameters from values of f, which is assumed to be the function of this
  // row.
  double (*alpha)(const std::function<double(double)>& f);
  double (*beta)(const std::function<double(double)>& f);
  double (*value)(double x, double alpha, double beta);
};

using F = const std::function<double(double)>&;
constexpr auto kNone = [](F) { return 0.0; };
constexpr double kFar = 1e30, kSqrtHalf = 0.70710678118654752440, kSqrt2OverPi = 0.79788456080286535588;

constexpr Row kRows[] = {
    {Activation::kLinear, [](F f) { return f(1) - f(0); }, [](F f) { return f(0); },
     [](double x, double a, double b) { return a * x + b; }},
    {Activation::kRelu, [](F f) { return -f(-1); }, kNone,
     [](double x, double a, double) { return x > 0 ? x : a * x; }},
    {Activation::kClip, [](F f) { return f(-kFar); }, [](F f) { return f(kFar); },
     [](double x, double a, double b) { return std::min(std::max(x, a), b); }},
    {Activation::kTanh, kNone, kNone, [](double x, double, double) { return std::tanh(x); }},
    {Activation::kSigmoid, kNone, kNone, [](double x, double, double) { return sigmoid(x); }},
    {Activation::kGeluErf, kNone, kNone,
     [](double x, double, double) { return 0.5 * x * (1 + std::erf(x * kSqrtHalf)); }},
    {Activation::kGeluTanh, kNone, kNone,
     [](double x, double, double) { return 0.5 * x * (1 + std::tanh(kSqrt2OverPi * x * (1 + 0.044715 * x * x))); }},
    {Activation::kSwish, [](F) { return 1.0; }, kNone, [](double x, double a, double) { return x * sigmoid(a * x); }},
    {Activation::kHardSwish, kNone, kNone,
     [](double x, double, double) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; }},
    {Activation::kElu, [](F f) { return -f(-50); }, kNone,
     [](double x, double a, double) { return x > 0 ? x : a * std::expm1(x); }},
    {Activation::kExp, kNone, kNone, [](double x, double, double) { return std::exp(x); }},
    {Activation::kAbs, kNone, kNone, [](double x, double, double) { return std::fabs(x); }},
    {Activation::kSquare, kNone, kNone, [](double x, double, double) { return x * x; }},
};

constexpr double kTried[] = {0,    1e-3, -1e-3, 0.1,  -0.1, 0.25,  -0.25, 0.5,  -0.5, 0.9,  -0.9,
                             1.1,  -1.1, 1.7,   -1.7, 2.05, -2.05, 2.5,   -2.5, 3.3,  -3.3, 4.2,
                             -4.2, 5.9,  -5.9,  6.5,  -6.5, 10,    -10,   40,   -40};
// Two values of functions at x count as equal if they differ by at most this part of the sum of |x| and their
// magnitude, or of 1 if that sum is smaller: constants of a graph are rounded to f32.
constexpr double kClose = 4e-7;

// Evaluates nodes for the case that the node `value` has the value x. Returns nullopt for a node that depends on
// anything but `value`, constants and elementwise ops.
class Evaluation {
 public:
  Evaluation(const Graph& group, const Domain& domain, NodeId value) : group_(group), domain_(domain), value_(value) {}

  std::optional<double> at(NodeId id, double x) {
    if (id == value_) return x;
    const Node& node = group_.nodes[id];
    if (node.op == Op::constant) return node.value;
    if (!is_float(node.dtype)) return std::nullopt;
    if (class_of(node.op) != OpClass::kElementwise || node.operands.size() > 3) return std::nullopt;
    const auto [known, is_new] = known_.try_emplace(id, 0);
    if (!is_new) return known->second;
    double values[3] = {};
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const Domain::Operand& operand = domain_.operands[id][k];
      if (operand.source < 0 || !operand.pieces.empty()) return std::nullopt;
      const std::optional<double> value = at(operand.source, x);
      if (!value) return std::nullopt;
      values[k] = *value;
    }
    return known_[id] = info(node.op).value(values[0], values[1], values[2]);
  }

 private:
  const Graph& group_;
  const Domain& domain_;
  NodeId value_;
  std::map<NodeId, double> known_;
};

}  // namespace

std::optional<Activated> activation_between(const Graph& group, const Domain& domain, NodeId value, NodeId result) {
  if (!Evaluation(group, domain, value).at(result, 1.0)) return std::nullopt;
  const std::function<double(double)> f = [&](double x) {
    return Evaluation(group, domain, value).at(result, x).value_or(std::nan(""));
  };
  for (const Row& row : kRows) {
    const double alpha = row.alpha(f), beta = row.beta(f);
    bool same = std::isfinite(alpha) && std::isfinite(beta);
    for (const double x : kTried) {
      const double is = f(x), named = row.value(x, alpha, beta);
      same = same && std::fabs(is - named) <= kClose * std::max(1.0, std::fabs(x) + std::fabs(named));
    }
    if (same) return Activated{row.what, alpha, beta};
  }
  return std::nullopt;
}

}  // namespace wl
