"""FX graphs of core ATen operators as graph text: which nodes can be said in it, and the text of those."""

import operator

import torch

from . import _math, _scatter, _sums, _views  # noqa: F401: their rows
from ._aten import TABLE
from ._text import GraphText, Unsupported, Value, dtype_name


def _tensors(value):
    """The tensors that a node results in, as PyTorch knows them."""
    found = value if isinstance(value, (tuple, list)) else [value]
    return [tensor for tensor in found if isinstance(tensor, torch.Tensor)]


def _check(node):
    """Raises Unsupported for results that kernels cannot have, whatever computes them."""
    for tensor in _tensors(node.meta.get("val")):
        dtype_name(tensor.dtype)
        if tensor.device.type != "cpu":
            raise Unsupported(f"a tensor on {tensor.device}")
        if tensor.is_sparse or tensor.is_quantized:
            raise Unsupported("a sparse or quantised tensor")
        if not all(isinstance(extent, int) for extent in tensor.shape):
            raise Unsupported("an extent that is not known")
        if tensor.numel() == 0:
            raise Unsupported("a tensor without elements")


class Lowering:
    """The text of some nodes of a graph; what other nodes compute are its inputs."""

    def __init__(self):
        self.text, self.values, self.inputs = GraphText(), {}, []

    def value(self, node):
        if node not in self.values:
            tensor = node.meta["val"]
            if not isinstance(tensor, torch.Tensor):
                raise Unsupported(f"an operand {node.name} that is no tensor")
            _check(node)
            self.values[node] = self.text.input(f"i{len(self.inputs)}", dtype_name(tensor.dtype), tensor.shape)
            self.inputs.append(node)
        return self.values[node]

    def add(self, node):
        """Adds a node. Raises Unsupported, with the reason."""
        if node.target is operator.getitem:
            results = self.values.get(node.args[0])
            if not isinstance(results, tuple) or node.args[1] >= len(results):
                raise Unsupported("a result of a node that is not taken")
            self.values[node] = results[node.args[1]]
            return
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
    """For each call of an operator: None, or the reason why it stays with eager."""
    lowering, reasons = Lowering(), {}
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        try:
            lowering.add(node)
            reasons[node] = None
        except Unsupported as reason:
            reasons[node] = str(reason)
        except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
            reasons[node] = f"{node.target}: {error}"
    return reasons


def text_of(graph):
    """The text of a whole graph, its placeholders in order (those that nothing reads are no inputs), and names of its outputs.
    Returns (text, indices of the placeholders that are inputs)."""
    lowering = Lowering()
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    for node in placeholders:
        if node.users:
            lowering.value(node)
    for node in graph.nodes:
        if node.op == "call_function":
            lowering.add(node)
    (results,) = graph.output_node().args
    for number, node in enumerate(results if isinstance(results, (tuple, list)) else [results]):
        lowering.text.output(f"o{number}", lowering.values[node])
    return lowering.text.text(), [i for i, node in enumerate(placeholders) if node.users]
