"""TABLE: for each operator of core ATen a function that writes it as graph text. Elementwise ones are here, others in _math.py, _views.py,
_sums.py and _scatter.py. A function gets the text, the FX node and the node's arguments, in which tensors are Values, and returns the Value
of the node, or a tuple of Values. It raises Unsupported for what the text cannot express."""

import math

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

from ._text import FLOATS, NARROW, Unsupported, Value, dtype_name, in_range, saturated

aten = torch.ops.aten
TABLE = {}


def row(*overloads):
    def add(function):
        for overload in overloads:
            TABLE[overload] = function
        return function

    return add


def result_of(node):
    """Returns the dtype and the shape of a node's result, from the node's metadata."""
    value = node.meta["val"]
    return dtype_name(value.dtype), tuple(int(extent) for extent in value.shape)


def prepared(g, operand, dtype, shape):
    """Returns a tensor or a number converted to a Value of this dtype and shape."""
    if isinstance(operand, Value):
        return g.broadcast(g.cast(operand, dtype), shape)
    if operand is True or operand is False or isinstance(operand, (int, float)):
        return g.constant(operand, dtype, shape)
    raise Unsupported(f"an operand {operand!r}")


def wide(dtype):
    """Returns the dtype in which eager computes those operators of this dtype that consist of several operations or have numbers as
    operands."""
    return "f32" if dtype in NARROW else dtype


def pointwise(g, name, node, operands, dtype=None):
    """Returns the result of one elementwise operation. As in eager, a number that is combined with narrow floats is first rounded to their
    dtype, except in products and quotients. `dtype`: that of the operation; None: that of the result."""
    result, shape = result_of(node)
    if dtype is None and any(isinstance(operand, float) for operand in operands):
        dtype = wide(result)
        if dtype != result and name not in ("mul", "div"):
            operands = [g.constant(operand, result, shape) if isinstance(operand, float) else operand for operand in operands]
    dtype = dtype or result
    value = g.op(name, *(prepared(g, operand, dtype, shape) for operand in operands))
    return g.cast(value, result)


def compared_dtype(node):
    """Returns the dtype in which PyTorch compares operands. By PyTorch's rules of promotion, numbers and tensors without axes do not widen
    tensors of the same kind (integers or floats)."""
    given = [operand.meta["val"] if isinstance(operand, torch.fx.Node) else operand for operand in node.args[:2]]
    return dtype_name(elementwise_dtypes(*given, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)[1])


UNARY = {
    "abs": "abs", "neg": "neg", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2", "log1p": "log1p",
    "sqrt": "sqrt", "rsqrt": "rsqrt", "reciprocal": "rcp", "sin": "sin", "cos": "cos", "tanh": "tanh", "sigmoid": "sigmoid",
    "erf": "erf", "atan": "atan", "floor": "floor", "ceil": "ceil", "round": "round", "sign": "sign",
}  # fmt: skip
for _name, _op in UNARY.items():

    @row(getattr(aten, _name).default)
    def _unary(g, node, x, _op=_op):
        if x.dtype not in FLOATS and _op in ("floor", "ceil", "round"):
            return x
        return pointwise(g, _op, node, [x])


def checked_divisor(node, y):
    """Raises Unsupported for integer divisions whose divisor may be 0: eager raises an error for a divisor of 0, which kernels cannot
    do."""
    if result_of(node)[0] not in FLOATS and (isinstance(y, Value) or y == 0):
        raise Unsupported("a division of integers whose divisor may be 0")


BINARY = {"maximum": "max", "minimum": "min", "fmod": "fmod", "remainder": "mod"}
for _name, _op in BINARY.items():
    for _overload in ("Tensor", "Scalar", "default"):
        if hasattr(getattr(aten, _name), _overload):

            @row(getattr(getattr(aten, _name), _overload))
            def _binary(g, node, x, y, _op=_op):
                if result_of(node)[0] == "b1":
                    return pointwise(g, {"max": "logical_or", "min": "logical_and"}.get(_op, _op), node, [x, y])
                if _op in ("fmod", "mod"):
                    checked_divisor(node, y)
                return pointwise(g, _op, node, [x, y])


@row(aten.mul.Tensor, aten.mul.Scalar)
def mul(g, node, x, y):
    return pointwise(g, "logical_and" if result_of(node)[0] == "b1" else "mul", node, [x, y])


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):

    @row(getattr(aten, _name).Tensor, getattr(aten, _name).Scalar)
    def _compare(g, node, x, y, _name=_name):
        dtype = compared_dtype(node)
        if any(isinstance(number, int) and not in_range(number, dtype) for number in (x, y)):
            raise Unsupported("a comparison with a number that the dtype does not have")
        return pointwise(g, _name, node, [x, y], dtype)


for _name, _logical, _bits in (("and", "logical_and", "bit_and"), ("or", "logical_or", "bit_or"), ("xor", "logical_xor", "bit_xor")):

    @row(getattr(aten, f"bitwise_{_name}").Tensor, getattr(aten, f"bitwise_{_name}").Scalar)
    def _bitwise(g, node, x, y, _logical=_logical, _bits=_bits):
        return pointwise(g, _logical if result_of(node)[0] == "b1" else _bits, node, [x, y])

    @row(getattr(aten, f"logical_{_name}").default)
    def _logical_op(g, node, x, y, _logical=_logical):
        return pointwise(g, _logical, node, [x, y], "b1")


@row(aten.logical_not.default, aten.bitwise_not.default)
def logical_not(g, node, x):
    if node.target == aten.bitwise_not.default and x.dtype != "b1":
        return pointwise(g, "bit_xor", node, [x, -1])
    return pointwise(g, "logical_not", node, [x], "b1")


@row(aten.add.Tensor, aten.add.Scalar)
def add(g, node, x, y, alpha=1):
    if alpha != 1:
        y = pointwise(g, "mul", node, [y, alpha])
    if result_of(node)[0] == "b1":
        return pointwise(g, "logical_or", node, [x, y])
    return pointwise(g, "add", node, [x, y])


@row(aten.sub.Tensor, aten.sub.Scalar)
def sub(g, node, x, y, alpha=1):
    if alpha != 1:
        y = pointwise(g, "mul", node, [y, alpha])
    return pointwise(g, "sub", node, [x, y])


@row(aten.rsub.Scalar, aten.rsub.Tensor)
def rsub(g, node, x, y, alpha=1):
    return sub(g, node, y, x, alpha)


@row(aten.div.Tensor, aten.div.Scalar, aten.true_divide.Tensor)
def div(g, node, x, y):
    checked_divisor(node, y)
    return pointwise(g, "div", node, [x, y])


@row(aten.pow.Tensor_Scalar, aten.pow.Tensor_Tensor, aten.pow.Scalar)
def power(g, node, x, y):
    dtype = result_of(node)[0]
    if dtype not in FLOATS:
        if isinstance(y, Value) or not isinstance(y, int) or y < 0:
            raise Unsupported("a power of integers, but by a whole number")
        return power_of_integers(g, node, x, y)
    if isinstance(y, (int, float)) and not isinstance(y, bool):
        if y == 2:
            return pointwise(g, "mul", node, [x, x])
        if y == 3:
            return pointwise(g, "mul", node, [pointwise(g, "mul", node, [x, x]), x])
        if y == 1:
            return pointwise(g, "mul", node, [x, 1])
        if y in (0.5, -0.5, -1):
            return pointwise(g, {0.5: "sqrt", -0.5: "rsqrt", -1: "rcp"}[y], node, [x])
    return pointwise(g, "pow", node, [x, y])


def power_of_integers(g, node, x, y):
    """Returns a power of integers, computed by repeated squaring. Overflow wraps, as in PyTorch."""
    result, square = g.constant(1, *result_of(node)), prepared(g, x, *result_of(node))
    while y:
        if y & 1:
            result = g.op("mul", result, square)
        square, y = g.op("mul", square, square), y >> 1
    return result


@row(aten.relu.default)
def relu(g, node, x):
    return pointwise(g, "max", node, [x, 0])


@row(aten.clamp.default, aten.clamp.Tensor, aten.hardtanh.default)
def clamp(g, node, x, low=None, high=None):
    if node.target == aten.hardtanh.default:
        low, high = -1 if low is None else low, 1 if high is None else high
    for name, bound in (("max", low), ("min", high)):
        if bound is not None:
            x = pointwise(g, name, node, [x, bound if isinstance(bound, Value) else saturated(bound, result_of(node)[0])])
    return pointwise(g, "mul", node, [x, 1]) if low is None and high is None else x


@row(aten.where.self, torch.ops.prims.where.default)
def where(g, node, condition, x, y):
    result, shape = result_of(node)
    operands = [prepared(g, operand, result, shape) for operand in (x, y)]
    return g.op("select", prepared(g, condition, "b1", shape), *operands)


@row(aten.isnan.default)
def isnan(g, node, x):
    return g.op("ne", x, x) if x.dtype in FLOATS else g.constant(0, "b1", x.shape)


@row(aten.isinf.default)
def isinf(g, node, x):
    if x.dtype not in FLOATS:
        return g.constant(0, "b1", x.shape)
    return g.op("eq", g.op("abs", x), g.constant(math.inf, x.dtype, x.shape))


@row(aten.trunc.default)
def trunc(g, node, x):
    if x.dtype not in FLOATS:
        return x
    return pointwise(g, "mul", node, [pointwise(g, "sign", node, [x]), pointwise(g, "floor", node, [g.op("abs", x)])])


@row(aten.sign.default, torch.ops.prims.sign.default)
def sign(g, node, x):
    value = pointwise(g, "sign", node, [x])
    return g.op("select", g.op("ne", x, x), g.constant(0, *result_of(node)), value) if x.dtype in FLOATS else value
