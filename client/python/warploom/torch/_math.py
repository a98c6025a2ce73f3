"""Rows of TABLE: functions that are sums of others, and positions of extremes."""

import functools
import math

import torch

from ._aten import TABLE, prepared, result_of, row
from ._sums import axes_of, first_place
from ._text import FLOATS, Unsupported

aten, prims = torch.ops.aten, torch.ops.prims


class Formula:
    """Elementwise ops by name on operands of one dtype and shape; numbers are constants of these. What compares gives b1, which
    `select` takes."""

    def __init__(self, g, dtype, shape):
        self._g, self._dtype, self._shape = g, dtype, shape

    def __getattr__(self, name):
        return functools.partial(self._op, name)

    def _op(self, name, *operands):
        return self._g.op(name, *(prepared(self._g, operand, self._dtype, self._shape) for operand in operands))

    def select(self, condition, a, b):
        return self._g.op("select", condition, *(prepared(self._g, operand, self._dtype, self._shape) for operand in (a, b)))


def formula(name):
    """The row of a function of ATen, and of the primitive of that name, that gets a Formula and operands of the result's dtype."""

    def add(function):
        def lowered(g, node, *operands):
            dtype, shape = result_of(node)
            if dtype not in FLOATS:
                raise Unsupported(f"{name} as {dtype}")
            return function(Formula(g, dtype, shape), *(prepared(g, operand, dtype, shape) for operand in operands))

        row(*(getattr(library, name).default for library in (aten, prims) if hasattr(library, name)))(lowered)
        return lowered

    return add


@formula("tan")
def tan(m, x):
    return m.div(m.sin(x), m.cos(x))


@formula("sinh")
def sinh(m, x):
    e = m.expm1(m.abs(x))  # exact near 0, where exp(x) - exp(-x) is not
    return m.mul(m.sign(x), m.select(m.gt(e, 1e18), m.mul(e, 0.5), m.mul(m.add(e, m.div(e, m.add(e, 1))), 0.5)))


@formula("cosh")
def cosh(m, x):
    return m.mul(m.add(m.exp(x), m.exp(m.neg(x))), 0.5)


@formula("asin")
def asin(m, x):
    return m.atan(m.div(x, m.sqrt(m.mul(m.sub(1, x), m.add(1, x)))))


@formula("acos")
def acos(m, x):
    return m.mul(m.atan(m.sqrt(m.div(m.sub(1, x), m.add(1, x)))), 2)


@formula("asinh")
def asinh(m, x):
    a = m.abs(x)
    near = m.log1p(m.add(a, m.div(m.mul(a, a), m.add(1, m.sqrt(m.add(m.mul(a, a), 1))))))
    return m.mul(m.sign(x), m.select(m.gt(a, 1e9), m.add(m.log(a), math.log(2)), near))


@formula("acosh")
def acosh(m, x):
    t = m.sub(x, 1)
    return m.log1p(m.add(t, m.mul(m.sqrt(t), m.sqrt(m.add(t, 2)))))


@formula("atanh")
def atanh(m, x):
    return m.mul(m.log1p(m.div(m.mul(x, 2), m.sub(1, x))), 0.5)


@formula("atan2")
def atan2(m, y, x):
    steep = m.gt(m.abs(y), m.abs(x))
    ratio = m.atan(m.select(steep, m.div(x, y), m.div(y, x)))
    upright = m.sub(m.select(m.lt(y, 0), -math.pi / 2, math.pi / 2), ratio)
    turned = m.add(ratio, m.select(m.lt(y, 0), -math.pi, math.pi))
    angle_ = m.select(steep, upright, m.select(m.lt(x, 0), turned, ratio))
    return m.select(m.eq(m.max(m.abs(x), m.abs(y)), 0), 0.0, angle_)


@formula("log10")
def log10(m, x):
    return m.mul(m.log2(x), math.log10(2))


@formula("hypot")
def hypot(m, x, y):
    a, b = m.abs(x), m.abs(y)
    longer = m.max(a, b)
    ratio = m.div(m.min(a, b), longer)
    return m.select(m.eq(longer, 0), 0.0, m.mul(longer, m.sqrt(m.add(m.mul(ratio, ratio), 1))))


def _without_nan(name):
    @formula(f"f{name}")
    def extreme(m, x, y):
        return m.select(m.ne(x, x), y, m.select(m.ne(y, y), x, getattr(m, name)(x, y)))


_without_nan("max")
_without_nan("min")


@formula("angle")
def angle(m, x):
    return m.select(m.ne(x, x), x, m.select(m.lt(x, 0), math.pi, 0.0))


def is_negative(g, x):
    m = Formula(g, x.dtype, x.shape)
    if x.dtype in FLOATS:
        x = m.select(m.eq(x, 0), m.div(1, x), x)  # 1 / -0 is -inf
    return m.lt(x, 0)


@row(aten.signbit.default)
def signbit(g, node, x):
    return is_negative(g, x)


@row(aten.copysign.Tensor, aten.copysign.Scalar)
def copysign(g, node, x, y):
    dtype, shape = result_of(node)
    m, y = Formula(g, dtype, shape), prepared(g, y, dtype, shape)
    size = m.abs(x)
    return m.select(is_negative(g, y), m.neg(size), size)


@row(aten.round.decimals)
def round_decimals(g, node, x, decimals=0):
    m = Formula(g, *result_of(node))
    scale = 10.0 ** abs(decimals)
    near, far = (m.mul, m.div) if decimals >= 0 else (m.div, m.mul)
    return far(m.round(near(x, scale)), scale)


@row(aten.ldexp.Tensor)
def ldexp(g, node, x, y):
    m = Formula(g, *result_of(node))
    return m.mul(x, m.exp2(y))


# Positions of extremes.
def found(g, how, x, axis):
    """The extreme along an axis, and where it first is; both without the axis."""
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


# Primitives that PyTorch's decompositions are made of, and that ATen has by the same name.
_SAME = (
    "abs", "neg", "exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tanh", "erf", "erfc", "atan",
    "floor", "ceil", "round", "sign", "trunc", "add", "sub", "mul", "div", "pow", "fmod", "remainder", "maximum", "minimum", "eq", "ne", "lt", "le",
    "gt", "ge", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "amax", "amin",
)  # fmt: skip
for _name in _SAME:
    _packet = getattr(aten, _name)
    _known = [getattr(_packet, _overload) for _overload in ("default", "Tensor", "Tensor_Tensor") if hasattr(_packet, _overload)]
    TABLE[getattr(prims, _name).default] = next(TABLE[_overload] for _overload in _known if _overload in TABLE)
