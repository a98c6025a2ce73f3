"""Builds canonical graph text, which `warploom tune` reads, op by op."""

import math
from typing import NamedTuple, Optional

from .._model import TORCH

NAMES = {theirs: ours for ours, theirs in TORCH.items()}
FLOATS = {"f64", "f32", "f16", "bf16", "f8e4m3fn", "f8e5m2"}
NARROW = FLOATS - {"f64", "f32"}
LOGICAL = {"eq", "ne", "lt", "le", "gt", "ge"}


# Names of the elementwise ops that take any dtype, and of those that take only floats, as in compiler/ir/ops.def. takes() has the rules for
# all other ops.
_ANYTHING = LOGICAL | {"select", "cast"}
_OF_FLOATS = {
    "sqrt", "rsqrt", "rcp", "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tanh", "sigmoid", "erf", "atan", "floor", "ceil", "round",
}  # fmt: skip


class Unsupported(Exception):
    """The error that the graph text cannot express an operator; its message is the reason."""


class Value(NamedTuple):
    id: int
    dtype: str
    shape: tuple
    source: Optional[str] = None  # name of the input of which this value is a view or a cast; None: the value is computed


def takes(name, dtype):
    """Whether an elementwise op takes operands of a dtype."""
    if name in _ANYTHING:
        return True
    if name.startswith("logical_"):
        return dtype == "b1"
    if name.startswith("bit_"):
        return dtype not in FLOATS and dtype != "b1"
    return dtype in FLOATS if name in _OF_FLOATS else dtype != "b1"


def dtype_name(dtype):
    name = NAMES.get(str(dtype).removeprefix("torch."))
    if name is None:
        raise Unsupported(f"elements of {dtype}")
    return name


def _range(dtype):
    """Returns the least and the greatest value of an integer dtype."""
    bits = int(dtype[1:])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype[0] == "i" else (0, (1 << bits) - 1)


def lowest(dtype):
    return -math.inf if dtype in FLOATS else _range(dtype)[0]


def in_range(number, dtype):
    """Whether an integer is in the range of a dtype; always true for floats, which may round the integer."""
    if dtype in FLOATS or dtype == "b1":
        return True
    low, high = _range(dtype)
    return low <= number <= high


def saturated(number, dtype):
    """Returns a number clamped to the range of an integer dtype; unchanged for floats."""
    if dtype in FLOATS or dtype == "b1":
        return number
    low, high = _range(dtype)
    return min(max(number, low), high)


def _number(value, dtype):
    """Returns the text of a number as an element of a dtype. Integers that are out of range wrap, as in PyTorch."""
    if dtype == "b1":
        return str(int(value != 0))
    if dtype not in FLOATS and isinstance(value, (int, float)) and math.isfinite(value):
        low, high = _range(dtype)
        return str((int(value) - low) % (high - low + 1) + low)
    if isinstance(value, int):
        return str(int(value))
    return {math.inf: "inf", -math.inf: "-inf"}.get(value, "nan" if math.isnan(value) else repr(float(value)))


def _list(values):
    return "[" + ",".join(str(int(v)) for v in values) + "]"


class GraphText:
    def __init__(self):
        self._lines, self._outputs, self._inputs, self._bounds = [], [], {}, {}

    def _add(self, what, dtype, shape, source=None):
        shape = tuple(int(extent) for extent in shape)
        value = Value(len(self._lines), dtype, shape, source)
        self._lines.append((what, dtype, shape))
        return value

    def input(self, name, dtype, shape):
        self._inputs[name] = len(self._lines)
        return self._add(f'input "{name}"', dtype, shape, name)

    def bound(self, value, extent):
        """Notes that the elements of an input are indices below `extent`, so that tuning generates such values for it."""
        if value.source is not None:
            self._bounds[value.source] = min(extent, self._bounds.get(value.source, extent))

    def output(self, name, value):
        self._outputs.append(f'  output "{name}" %{value.id}')

    def constant(self, number, dtype, shape=()):
        return self._add(f"constant {_number(number, dtype)}", dtype, shape)

    def iota(self, axis, dtype, shape):
        return self._add(f"iota axis=[{axis}]", dtype, shape)

    def op(self, name, *operands):
        """Adds an elementwise op. Its operands have one shape and dtype (a condition of `select` is b1)."""
        dtype = "b1" if name in LOGICAL else operands[-1].dtype
        if not takes(name, operands[-1].dtype):
            raise Unsupported(f"{name} of {operands[-1].dtype}")
        return self._add(f"{name} " + " ".join(f"%{o.id}" for o in operands), dtype, operands[0].shape)

    def cast(self, value, dtype):
        if value.dtype == dtype:
            return value
        if dtype == "f8e5m2":
            raise Unsupported("a cast to f8e5m2, which saturates here and does not in PyTorch")
        if value.dtype == "b1" or dtype != "b1":
            return self._add(f"cast %{value.id}", dtype, value.shape, value.source)
        return self.op("ne", value, self.constant(0, value.dtype, value.shape))

    def reshape(self, value, shape):
        shape = tuple(int(extent) for extent in shape)
        return value if shape == value.shape else self._add(f"reshape %{value.id}", value.dtype, shape, value.source)

    def broadcast(self, value, shape):
        """Broadcasts by NumPy's rules: axes of extent 1 are repeated, and new axes come first."""
        shape = tuple(int(extent) for extent in shape)
        if value.shape == shape:
            return value
        first = len(shape) - len(value.shape)
        kept = [i for i, extent in enumerate(value.shape) if extent == shape[first + i]]
        if any(value.shape[i] != 1 for i in range(len(value.shape)) if i not in kept):
            raise Unsupported(f"an expansion of {value.shape} to {shape}")
        value = self.reshape(value, [value.shape[i] for i in kept])
        return self._add(f"broadcast %{value.id} dims={_list(first + i for i in kept)}", value.dtype, shape, value.source)

    def transpose(self, value, perm):
        perm = [p % len(value.shape) for p in perm]
        if perm == list(range(len(perm))):
            return value
        return self._add(f"transpose %{value.id} perm={_list(perm)}", value.dtype, [value.shape[p] for p in perm], value.source)

    def slice(self, value, axis, start, extent, step=1):
        if start == 0 and step == 1 and extent == value.shape[axis]:
            return value
        starts, steps = [0] * len(value.shape), [1] * len(value.shape)
        starts[axis], steps[axis] = start, step
        shape = list(value.shape)
        shape[axis] = extent
        return self._add(f"slice %{value.id} starts={_list(starts)} steps={_list(steps)}", value.dtype, shape)

    def pad(self, value, low, high, number):
        if not any(low) and not any(high):
            return value
        shape = [n + a + b for n, a, b in zip(value.shape, low, high)]
        return self._add(f"pad %{value.id} low={_list(low)} high={_list(high)} value={_number(number, value.dtype)}", value.dtype, shape)

    def concat(self, values, axis):
        if len(values) == 1:
            return values[0]
        shape = list(values[0].shape)
        shape[axis] = sum(v.shape[axis] for v in values)
        return self._add("concat " + " ".join(f"%{v.id}" for v in values) + f" axis=[{axis}]", values[0].dtype, shape)

    def window(self, value, axes, sizes, strides, dilations):
        shape = list(value.shape)
        params = []
        for axis, size, stride, dilation in zip(axes, sizes, strides, dilations):
            shape[axis] = (shape[axis] - (size - 1) * dilation - 1) // stride + 1
            params += [size, stride, dilation]
        return self._add(f"window %{value.id} axes={_list(axes)} params={_list(params)}", value.dtype, [*shape, *sizes])

    def reduce(self, how, value, axes):
        if not axes:
            return value
        shape = [n for i, n in enumerate(value.shape) if i not in axes]
        return self._add(f"reduce_{how} %{value.id} axes={_list(sorted(axes))}", value.dtype, shape)

    def contract(self, a, b, text):
        left, right = text.split("->")[0].split(",")
        extents = dict(zip(left, a.shape)) | dict(zip(right, b.shape))
        dtype = "i32" if a.dtype in ("i8", "u8") else a.dtype
        return self._add(f'contract %{a.id} %{b.id} "{text}"', dtype, [extents[c] for c in text.split("->")[1]])

    def take_along(self, value, index, axis):
        self.bound(index, value.shape[axis])
        return self._add(f"take_along %{value.id} %{index.id} axis=[{axis}]", value.dtype, index.shape)

    def text(self):
        names = {number: name for name, number in self._inputs.items()}
        lines = []
        for number, (what, dtype, shape) in enumerate(self._lines):
            fill = ""
            if number in names:
                high = 2 if dtype == "b1" else self._bounds.get(names[number], 2)
                fill = " normal(0,1)" if dtype in FLOATS else f" uniform(0,{high})"
            lines.append(f"  %{number} = {what} : {dtype}{_list(shape)}{fill}")
        return "\n".join(["graph {", *lines, *self._outputs, "}"]) + "\n"
