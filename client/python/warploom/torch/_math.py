"""Rows of TABLE: functions that are written with several ops, and positions of extremes."""

import functools
import math

import torch

from ._aten import TABLE, checked_divisor, div, pointwise, prepared, result_of, row, trunc, wide
from ._sums import axes_of, first_place
from ._text import FLOATS, Unsupported

aten, prims = torch.ops.aten, torch.ops.prims


class Formula:
    """Elementwise ops as methods, on operands of one dtype and shape. Operands may be Values, which are converted, or numbers. Comparisons
    return Values of b1, which are the conditions of `select`."""

    def __init__(self, g, dtype, shape):
        self._g, self._dtype, self._shape = g, dtype, shape

    @property
    def dtype(self):
        return self._dtype

    def of(self, dtype):
        return Formula(self._g, dtype, self._shape)

    def cast(self, x):
        return self._g.cast(x, self._dtype)

    def constant(self, number):
        return self._g.constant(number, self._dtype, self._shape)

    def is_negative(self, x):
        """Whether x is less than 0 or is the float -0, which is recognised by 1 / -0 = -inf."""
        return self.lt(self.select(self.eq(x, 0), self.div(1, x), x), 0) if self._dtype in FLOATS else self.lt(x, 0)

    def __getattr__(self, name):
        return functools.partial(self._op, name)

    def _op(self, name, *operands):
        return self._g.op(name, *(prepared(self._g, operand, self._dtype, self._shape) for operand in operands))

    def select(self, condition, a, b):
        return self._g.op("select", condition, *(prepared(self._g, operand, self._dtype, self._shape) for operand in (a, b)))


def formula(name):
    """Returns a decorator that makes a function of a Formula and operands the row of the ATen operator and of the primitive called `name`.
    Operands have the result's dtype or, if that is narrower than f32, f32; the result is rounded once."""

    def add(function):
        def lowered(g, node, *operands):
            if result_of(node)[0] not in FLOATS:
                raise Unsupported(f"{name} as {result_of(node)[0]}")
            return rounded_once(g, node, function, *operands)

        row(*(getattr(library, name).default for library in (aten, prims) if hasattr(library, name)))(lowered)
        return lowered

    return add


# No formula below has an intermediate value that overflows or is NaN, unless the result itself overflows or is NaN.
@formula("tan")
def tan(m, x):
    return m.div(m.sin(x), m.cos(x))


def signed(m, size, x):
    """Returns a value of magnitude `size` with the sign of x."""
    return m.select(m.lt(x, 0), m.neg(size), size)


def squared(m, x):
    """Returns x * x / 2 as 0.625 * x * x * 0.8, so that the whole square does not overflow. (A single factor 0.5 would be moved behind the
    product.)"""
    return m.mul(m.mul(x, 0.625), m.mul(x, 0.8))


@formula("sinh")
def sinh(m, x):
    a = m.abs(x)
    e, half = m.expm1(a), m.exp(m.mul(a, 0.5))  # expm1 is accurate near 0, where exp(x) - exp(-x) cancels
    return signed(m, m.select(m.gt(a, 20), squared(m, half), m.mul(m.add(e, m.div(e, m.add(e, 1))), 0.5)), x)


@formula("cosh")
def cosh(m, x):
    half = m.exp(m.mul(m.abs(x), 0.5))
    return m.add(squared(m, half), m.mul(m.exp(m.neg(m.abs(x))), 0.5))


@formula("asin")
def asin(m, x):
    return m.atan(m.div(x, m.sqrt(m.mul(m.sub(1, x), m.add(1, x)))))


@formula("acos")
def acos(m, x):
    return m.mul(m.atan(m.sqrt(m.div(m.sub(1, x), m.add(1, x)))), 2)


@formula("asinh")
def asinh(m, x):
    a = m.abs(x)
    square = m.mul(a, a)
    near = m.log1p(m.add(a, m.div(square, m.add(1, m.sqrt(m.add(square, 1))))))
    return signed(m, m.select(m.gt(a, 1e9), m.add(m.log(a), math.log(2)), near), x)


@formula("acosh")
def acosh(m, x):
    t = m.sub(x, 1)
    near = m.log1p(m.add(t, m.mul(m.sqrt(t), m.sqrt(m.add(t, 2)))))
    return m.select(m.gt(x, 1e9), m.add(m.log(x), math.log(2)), near)


@formula("atanh")
def atanh(m, x):
    a = m.abs(x)
    return signed(m, m.mul(m.log1p(m.div(m.mul(a, 2), m.sub(1, a))), 0.5), x)


def quotient_of_sizes(m, a, b):
    """Returns the smaller of two magnitudes divided by the greater (1 if both are infinite, 0 if both are 0), and the greater magnitude."""
    greater, lesser = m.max(a, b), m.min(a, b)
    equal = m.select(m.eq(greater, 0), 0.0, 1.0)
    return m.select(m.eq(lesser, greater), equal, m.div(lesser, greater)), greater


@formula("atan2")
def atan2(m, y, x):
    size_y, size_x = m.abs(y), m.abs(x)
    angle_ = m.atan(quotient_of_sizes(m, size_y, size_x)[0])
    angle_ = m.select(m.gt(size_y, size_x), m.sub(math.pi / 2, angle_), angle_)
    angle_ = m.select(m.is_negative(x), m.sub(math.pi, angle_), angle_)
    return m.select(m.is_negative(y), m.neg(angle_), angle_)


@formula("log10")
def log10(m, x):
    return m.mul(m.log2(x), math.log10(2))


@formula("hypot")
def hypot(m, x, y):
    ratio, longer = quotient_of_sizes(m, m.abs(x), m.abs(y))
    size = m.mul(longer, m.sqrt(m.add(m.mul(ratio, ratio), 1)))
    return m.select(m.eq(m.abs(x), math.inf), math.inf, m.select(m.eq(m.abs(y), math.inf), math.inf, size))


@formula("erfc")
def erfc(m, x):
    """Computes the Chebyshev fit of Numerical Recipes (erfcc) in f64; its relative error is at most 1.2e-7."""
    if m.dtype == "f64":
        raise Unsupported("erfc as f64")
    d = m.of("f64")
    size = d.abs(d.cast(x))
    t = d.div(1, d.add(1, d.mul(size, 0.5)))
    value = d.constant(0.17087277)
    for c in (-0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223):
        value = d.add(d.mul(value, t), c)
    value = d.mul(t, d.exp(d.sub(value, d.mul(size, size))))
    return m.cast(d.select(d.lt(d.cast(x), 0), d.sub(2, value), value))


def _without_nan(name):
    @formula(f"f{name}")
    def extreme(m, x, y):
        return m.select(m.ne(x, x), y, m.select(m.ne(y, y), x, getattr(m, name)(x, y)))


_without_nan("max")
_without_nan("min")


@formula("angle")
def angle(m, x):
    return m.select(m.ne(x, x), x, m.select(m.lt(x, 0), math.pi, 0.0))


@row(aten.signbit.default)
def signbit(g, node, x):
    return Formula(g, x.dtype, x.shape).is_negative(x)


@row(aten.copysign.Tensor, aten.copysign.Scalar)
def copysign(g, node, x, y):
    dtype, shape = result_of(node)
    m, y = Formula(g, dtype, shape), prepared(g, y, dtype, shape)
    size = m.abs(prepared(g, x, dtype, shape))
    return m.select(m.is_negative(y), m.neg(size), size)


@row(aten.round.decimals)
def round_decimals(g, node, x, decimals=0):
    m = Formula(g, *result_of(node))
    scale = 10.0 ** abs(decimals)
    near, far = (m.mul, m.div) if decimals >= 0 else (m.div, m.mul)
    return far(m.round(near(x, scale)), scale)


@row(aten.ldexp.Tensor)
def ldexp(g, node, x, y):
    dtype, shape = result_of(node)
    m = Formula(g, wide(dtype), shape)
    return g.cast(m.mul(x, m.exp2(y)), dtype)


def rounded_once(g, node, function, *operands):
    """Applies a function of a Formula and operands in the result's dtype or, if that is narrower than f32, in f32, and rounds the result,
    as eager does."""
    dtype, shape = result_of(node)
    at = wide(dtype)
    return g.cast(function(Formula(g, at, shape), *(prepared(g, operand, at, shape) for operand in operands)), dtype)


@row(aten.addcmul.default)
def addcmul(g, node, x, a, b, value=1):
    return rounded_once(g, node, lambda m, x, a, b: m.add(x, m.mul(m.mul(value, a), b)), x, a, b)


@row(aten.addcdiv.default)
def addcdiv(g, node, x, a, b, value=1):
    return rounded_once(g, node, lambda m, x, a, b: m.add(x, m.div(m.mul(value, a), b)), x, a, b)


def floor_divided(m, x, y):
    """Returns the quotient of floats, rounded down. It is computed from the remainder, because the rounded quotient may reach a whole
    number that the exact quotient lies below."""
    rest = m.fmod(x, y)
    quotient = m.div(m.sub(x, rest), y)
    below = m.select(m.lt(m.mul(m.sign(rest), m.sign(y)), 0), m.sub(quotient, 1), quotient)
    whole = m.floor(below)
    return m.select(m.eq(y, 0), m.div(x, y), m.select(m.gt(m.sub(below, whole), 0.5), m.add(whole, 1), whole))


def whole_quotient(m, x, y):
    """Returns the quotient of integers, rounded down. The division of integers rounds towards zero, so 1 is subtracted if the remainder is
    not 0 and its sign differs from the divisor's."""
    rest, quotient = m.fmod(x, y), m.div(x, y)
    below = m.select(m.ne(m.lt(rest, 0), m.lt(y, 0)), m.sub(quotient, 1), quotient)
    return m.select(m.eq(rest, 0), quotient, below)


@row(aten.div.Tensor_mode, aten.div.Scalar_mode)
def div_mode(g, node, x, y, rounding_mode=None):
    if rounding_mode is None:
        return div(g, node, x, y)
    if result_of(node)[0] in FLOATS:
        if rounding_mode == "floor":
            return rounded_once(g, node, floor_divided, x, y)
        return trunc(g, node, pointwise(g, "div", node, [x, y]))
    checked_divisor(node, y)
    return rounded_once(g, node, whole_quotient, x, y) if rounding_mode == "floor" else pointwise(g, "div", node, [x, y])


@row(aten.lerp.Scalar, aten.lerp.Tensor)
def lerp(g, node, x, y, weight):
    """Interpolates from the nearer end, so that both ends are exact."""

    def between(m, x, y, w):
        far = m.sub(y, x)
        return m.select(m.lt(m.abs(w), 0.5), m.add(x, m.mul(w, far)), m.sub(y, m.mul(far, m.sub(1, w))))

    return rounded_once(g, node, between, x, y, weight)


# The functions below find the positions of minima and maxima.
def found(g, how, x, axis):
    """Returns the extreme along an axis, and the position of its first occurrence. Neither result has the axis."""
    value = g.reduce(how, x, [axis])
    return value, g.cast(first_place(g, x, value, [axis], g.iota(axis, "i32", x.shape), x.shape[axis] - 1), "i64")


for _how in ("max", "min"):

    @row(getattr(aten, f"arg{_how}").default)
    def _position(g, node, x, dim=None, keepdim=False, _how=_how):
        if dim is None or not x.shape:
            x, dim = g.reshape(x, [math.prod(x.shape)]), 0
        return g.reshape(found(g, _how, x, dim % len(x.shape))[1], result_of(node)[1])

    @row(getattr(aten, _how).dim)
    def _extreme_at(g, node, x, dim, keepdim=False, _how=_how):
        shape = [int(n) for n in node.meta["val"][0].shape]
        x = x if x.shape else g.reshape(x, [1])
        return tuple(g.reshape(value, shape) for value in found(g, _how, x, dim % len(x.shape)))

    @row(getattr(aten, _how).default)
    def _extreme_of_all(g, node, x, _how=_how):
        return g.reduce(_how, x, axes_of(x, None))


# Primitives of PyTorch's decompositions whose rows are those of the ATen operators with the same names.
_SAME = (
    "abs", "neg", "exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tanh", "erf", "atan",
    "floor", "ceil", "round", "sign", "trunc", "add", "sub", "mul", "div", "pow", "fmod", "remainder", "maximum", "minimum", "eq", "ne", "lt", "le",
    "gt", "ge", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "amax", "amin",
)  # fmt: skip
for _name in _SAME:
    _packet = getattr(aten, _name)
    _known = [getattr(_packet, _overload) for _overload in ("default", "Tensor", "Tensor_Tensor") if hasattr(_packet, _overload)]
    TABLE[getattr(prims, _name).default] = next(TABLE[_overload] for _overload in _known if _overload in TABLE)
