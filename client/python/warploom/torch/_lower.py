"""Lowers FX graphs of core ATen operators to canonical graph text: decides which nodes it can express, and writes their text."""

import operator
from typing import NamedTuple, Optional

import torch

from . import _math, _scatter, _sums, _views  # noqa: F401: these modules add their rows to TABLE
from ._aten import TABLE
from ._text import GraphText, Unsupported, Value, dtype_name


def _tensors(value):
    """Returns the tensors among a node's results, from the node's metadata."""
    found = value if isinstance(value, (tuple, list)) else [value]
    return [tensor for tensor in found if isinstance(tensor, torch.Tensor)]


class Result(NamedTuple):
    """A result of a part: PyTorch's shape, strides and dtype. order: its axes from the slowest to the fastest, as order_of() returns them;
    None: its elements are not contiguous in any order."""

    shape: tuple
    stride: tuple
    dtype: torch.dtype
    order: Optional[list]


class Text(NamedTuple):
    """The text of a part. used: indices of the arguments that are the inputs i0, i1, .. of the text; orders: for each of these, the order of
    its axes in the text; results: a Result for each output."""

    text: str
    used: list
    orders: list
    results: list


def order_of(tensor):
    """Returns a tensor's axes from the slowest to the fastest, if in that order the elements are contiguous and not repeated; else None."""
    axes = list(range(tensor.dim()))
    if tensor.is_contiguous():
        return axes
    axes.sort(key=lambda axis: -tensor.stride(axis))
    step = 1
    for axis in reversed(axes):
        if tensor.shape[axis] != 1 and tensor.stride(axis) != step:
            return None
        step *= tensor.shape[axis]
    return axes


def _check(node):
    """Raises Unsupported if a node has a result that no kernel can have, whatever its operator."""
    for tensor in _tensors(node.meta.get("val")):
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise Unsupported("a sparse, nested or quantised tensor")
        dtype_name(tensor.dtype)
        if tensor.device.type != "cpu":
            raise Unsupported(f"a tensor on {tensor.device}")
        if tensor.is_neg() or tensor.is_conj():
            raise Unsupported("a view that negates what it shows")
        if not all(isinstance(extent, int) for extent in tensor.shape):
            raise Unsupported("an extent that is not known")
        if tensor.numel() == 0:
            raise Unsupported("a tensor without elements")


class Lowering:
    """Builds the text of some nodes of a graph; results of other nodes become its inputs. values: the Value of each node; inputs, orders: the
    nodes of the inputs and the orders of their axes."""

    def __init__(self):
        self.text, self.values, self.inputs, self.orders = GraphText(), {}, [], []

    def value(self, node):
        if node not in self.values:
            tensor = node.meta["val"]
            if not isinstance(tensor, torch.Tensor):
                raise Unsupported(f"an operand {node.name} that is no tensor")
            _check(node)
            order = order_of(tensor) or list(range(tensor.dim()))
            value = self.text.input(f"i{len(self.inputs)}", dtype_name(tensor.dtype), [tensor.shape[axis] for axis in order])
            self.values[node] = self.text.transpose(value, [order.index(axis) for axis in range(len(order))])
            self.inputs.append(node)
            self.orders.append(order)
        return self.values[node]

    def output(self, name, node):
        """Adds an output, and returns its Result."""
        value, tensor = self.values[node], node.meta["val"]
        order = order_of(tensor)
        self.text.output(name, value if order is None else self.text.transpose(value, order))
        return Result(value.shape, tensor.stride(), tensor.dtype, order)

    def add(self, node):
        """Adds a node. Raises Unsupported, with the reason, if the text cannot express it."""
        if node.target is operator.getitem:
            results = self.values.get(node.args[0])
            if not isinstance(results, tuple) or node.args[1] >= len(results):
                raise Unsupported("a result of a node that is not taken")
            result = results[node.args[1]]
        else:
            function = TABLE.get(node.target)
            if function is None:
                raise Unsupported(str(node.target))
            _check(node)
            arguments = torch.fx.node.map_arg(node.args, self.value)
            named = torch.fx.node.map_arg(node.kwargs, self.value)
            result = function(self.text, node, *arguments, **named)
        if isinstance(result, Value):
            expected = node.meta["val"]
            if (result.dtype, result.shape) != (dtype_name(expected.dtype), tuple(expected.shape)):
                raise Unsupported(f"{node.target} as {result.dtype}{list(result.shape)}, not {expected.dtype}{list(expected.shape)}")
        self.values[node] = result


def support_of(graph):
    """Returns for each call of an operator None, or the reason why the call stays with eager."""
    lowering, reasons = Lowering(), {}
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        try:
            lowering.add(node)
            reasons[node] = None
        except Unsupported as reason:
            reasons[node] = str(reason)
        except Exception as error:  # noqa: BLE001: a node whose arguments cannot be converted is left to eager
            reasons[node] = f"{node.target}: {error}"
    return reasons


def text_of(graph):
    """Returns the Text of a whole graph. Its inputs are the placeholders in order, except those that no node reads."""
    lowering = Lowering()
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    for node in placeholders:
        if node.users:
            lowering.value(node)
    for node in graph.nodes:
        if node.op == "call_function":
            lowering.add(node)
    (results,) = graph.output_node().args
    made = [lowering.output(f"o{i}", node) for i, node in enumerate(results if isinstance(results, (tuple, list)) else [results])]
    used = [i for i, node in enumerate(placeholders) if node.users]
    return Text(lowering.text.text(), used, lowering.orders, made)
