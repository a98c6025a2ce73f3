// Functions of one number, written as formulas of other functions. Each formula holds for every argument that the
// function is defined for: its intermediate values neither overflow nor lose all their digits unless the result does.
#include <cmath>
#include <numbers>

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {
namespace {

constexpr double kLn2 = std::numbers::ln2;
// For x above kLarge, x*x + 1 rounds to x*x in every dtype, so asinh and acosh of x are log(x) + log(2).
constexpr double kLarge = 1e9;

T exp(T x) {
  return apply(Op::exp, {x});
}
T log1p(T x) {
  return apply(Op::log1p, {x});
}
T atan(T x) {
  return apply(Op::atan, {x});
}

// `grows` is exp(|x|) / 2 and `falls` is exp(-|x|) / 2. Both are computed from exp(|x| / 2), since exp(|x|) may
// overflow although half of it does not.
struct Halves {
  T grows, falls;
};
Halves halves_of(T x) {
  const T root = exp(abs(x) * 0.5);
  return {root * (root * 0.5), 0.5 / root / root};
}

// Returns f(x). If x is narrower than f32, f is computed in f32 and its result is rounded once.
template <typename F>
T rounded_once(T x, F f) {
  if (size_of(x.dtype()) >= 4) return f(x);
  return cast(f(cast(x, DType::f32)), x.dtype());
}

}  // namespace

T sinh(Call& c) {
  return rounded_once(c.in(0), [](T x) {
    // With e = exp(x) - 1, sinh(x) is (e + e / (e + 1)) / 2. This formula loses no digits for small x.
    const T e = apply(Op::expm1, {x});
    const Halves halves = halves_of(x);
    return select(apply(Op::lt, {abs(x), 1.0}), (e + e / (e + 1.0)) * 0.5,
                  apply(Op::sign, {x}) * (halves.grows - halves.falls));
  });
}

T cosh(Call& c) {
  return rounded_once(c.in(0), [](T x) {
    const Halves halves = halves_of(x);
    return halves.grows + halves.falls;
  });
}

T tan(Call& c) {
  return rounded_once(c.in(0), [](T x) { return apply(Op::sin, {x}) / apply(Op::cos, {x}); });
}

T asin(Call& c) {
  return rounded_once(c.in(0), [](T x) { return atan(x / sqrt((1.0 - x) * (x + 1.0))); });
}

T acos(Call& c) {
  return rounded_once(c.in(0), [](T x) { return atan(sqrt((1.0 - x) / (x + 1.0))) * 2.0; });
}

T asinh(Call& c) {
  return rounded_once(c.in(0), [](T x) {
    const T a = abs(x), near = log1p(a + a * a / (1.0 + sqrt(a * a + 1.0)));
    const T size = select(apply(Op::gt, {a, kLarge}), apply(Op::log, {a}) + kLn2, near);
    return apply(Op::sign, {x}) * size;
  });
}

T acosh(Call& c) {
  return rounded_once(c.in(0), [](T x) {
    const T above = x - 1.0, near = log1p(above + sqrt(above) * sqrt(above + 2.0));
    return select(apply(Op::gt, {x, kLarge}), apply(Op::log, {x}) + kLn2, near);
  });
}

T atanh(Call& c) {
  return rounded_once(c.in(0), [](T x) { return (log1p(x) - log1p(-x)) * 0.5; });
}

// The form max(x, 0) + log(1 + exp(-|x|)) of log(1 + exp(x)) cannot overflow.
T softplus(T x) {
  return apply(Op::max, {x, 0.0}) + log1p(exp(-abs(x)));
}

T gelu_erf(T x) {
  return x * ((apply(Op::erf, {x * std::sqrt(0.5)}) + 1.0) * 0.5);
}

T gelu_tanh(T x) {
  const double scale = 0.7978845608028654;  // the value of sqrt(2 / pi)
  return x * ((apply(Op::tanh, {(x + x * x * x * 0.044715) * scale}) + 1.0) * 0.5);
}

}  // namespace wl::onnx_import
