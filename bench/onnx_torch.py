"""An ONNX graph as a torch module, so that torch.compile can be timed on any model of the table. Node by node, by a table of
op -> torch calls; the ops are those of the models that bench/models.py runs."""

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper

OPS = {}


def op(*names):
    def register(function):
        for name in names:
            OPS[name] = function
        return function

    return register


def simple(name, function):
    OPS[name] = lambda attributes, *inputs: function(*inputs)


for name, function in {
    "Add": torch.add,
    "Sub": torch.sub,
    "Mul": torch.mul,
    "Div": torch.div,
    "Pow": torch.pow,
    "MatMul": torch.matmul,
    "Erf": torch.erf,
    "Tanh": torch.tanh,
    "Relu": torch.relu,
    "Sigmoid": torch.sigmoid,
    "Sqrt": torch.sqrt,
    "Neg": torch.neg,
    "Exp": torch.exp,
    "Reciprocal": torch.reciprocal,
    "Where": torch.where,
}.items():
    simple(name, function)


@op("Softmax")
def softmax(a, x):
    return F.softmax(x, a.get("axis", -1))


@op("LogSoftmax")
def log_softmax(a, x):
    return F.log_softmax(x, a.get("axis", -1))


@op("LayerNormalization")
def layer_norm(a, x, scale, shift=None):
    axis = a.get("axis", -1) % x.dim()
    return F.layer_norm(x, x.shape[axis:], scale, shift, a.get("epsilon", 1e-5))


@op("BatchNormalization")
def batch_norm(a, x, scale, shift, mean, variance):
    return F.batch_norm(x, mean, variance, scale, shift, False, 0.0, a.get("epsilon", 1e-5))


@op("Gemm")
def gemm(a, x, y, z=None):
    x = x.t() if a.get("transA") else x
    y = y.t() if a.get("transB") else y
    out = (x @ y) * a.get("alpha", 1.0)
    return out if z is None else out + z * a.get("beta", 1.0)


@op("Conv")
def conv(a, x, w, bias=None):
    rank = x.dim() - 2
    pads = a.get("pads", [0] * 2 * rank)
    low, high = pads[:rank], pads[rank:]
    if low != high:
        x = F.pad(x, [p for pair in zip(reversed(low), reversed(high)) for p in pair])
        low = [0] * rank
    function = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    return function(x, w, bias, a.get("strides", 1), low, a.get("dilations", 1), a.get("group", 1))


@op("MaxPool")
def max_pool(a, x):
    rank = x.dim() - 2
    pads = a.get("pads", [0] * 2 * rank)
    return F.max_pool2d(x, a["kernel_shape"], a.get("strides", 1), pads[:rank], a.get("dilations", 1), bool(a.get("ceil_mode")))


@op("Reshape")
def reshape(a, x, shape):
    return x.reshape([x.shape[i] if s == 0 else s for i, s in enumerate(shape.tolist())])


@op("Transpose")
def transpose(a, x):
    return x.permute(a.get("perm", list(reversed(range(x.dim())))))


@op("Unsqueeze")
def unsqueeze(a, x, axes):
    rank = x.dim() + axes.numel()
    for axis in sorted(i % rank for i in axes.tolist()):
        x = x.unsqueeze(axis)
    return x


@op("Squeeze")
def squeeze(a, x, axes=None):
    return x.squeeze() if axes is None else x.squeeze(tuple(axes.tolist()))


@op("Expand")
def expand(a, x, shape):
    return x.expand(torch.broadcast_shapes(x.shape, shape.tolist()))


@op("Concat")
def concat(a, *parts):
    return torch.cat(parts, a["axis"])


@op("Split")
def split(a, x, sizes=None):
    if sizes is not None:
        return torch.split(x, sizes.tolist(), a.get("axis", 0))
    return torch.chunk(x, a["num_outputs"], a.get("axis", 0))


@op("Slice")
def slice_(a, x, starts, ends, axes=None, steps=None):
    axes = range(starts.numel()) if axes is None else axes.tolist()
    steps = [1] * starts.numel() if steps is None else steps.tolist()
    index = [slice(None)] * x.dim()
    for start, end, axis, step in zip(starts.tolist(), ends.tolist(), axes, steps):
        index[axis] = slice(start, min(end, 2**62), step)
    return x[tuple(index)]


@op("Pad")
def pad(a, x, pads, value=None, axes=None):
    pads, rank = pads.tolist(), x.dim()
    pairs = [(pads[i], pads[rank + i]) for i in reversed(range(rank))]
    return F.pad(x, [p for pair in pairs for p in pair], value=0.0 if value is None else value.item())


@op("GatherElements")
def gather_elements(a, x, index):
    return torch.gather(x, a.get("axis", 0), index)


@op("ReduceMean")
def reduce_mean(a, x, axes=None):
    axes = a.get("axes") if axes is None else axes.tolist()
    return torch.mean(x, axes, bool(a.get("keepdims", 1)))


@op("ReduceSum")
def reduce_sum(a, x, axes=None):
    axes = a.get("axes") if axes is None else axes.tolist()
    return torch.sum(x, axes, bool(a.get("keepdims", 1)))


class OnnxModule(torch.nn.Module):
    """`weights`: arrays by name, of graph inputs that are weights; initializers are constants."""

    def __init__(self, model, weights):
        super().__init__()
        missing = {node.op_type for node in model.graph.node} - set(OPS) - {"Constant", "Identity"}
        if missing:
            raise NotImplementedError(f"no torch call for {', '.join(sorted(missing))}")
        self.inputs = [i.name for i in model.graph.input if i.name not in weights]
        self.outputs = [o.name for o in model.graph.output]
        # What only says shapes and axes is a number of the program, not a tensor: torch.compile then sees static shapes.
        self.static, self.names = {}, {}
        known = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer} | dict(weights)
        for node in model.graph.node:
            if node.op_type == "Constant":
                known[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        for number, (key, array) in enumerate(known.items()):
            array = torch.from_numpy(np.array(array))
            if array.dtype == torch.int64 and array.dim() <= 1:
                self.static[key] = array
            else:
                self.names[key] = f"w{number}"
                self.register_buffer(self.names[key], array)
        self.nodes = [
            (OPS.get(node.op_type), {a.name: helper.get_attribute_value(a) for a in node.attribute}, list(node.input), list(node.output))
            for node in model.graph.node
            if node.op_type != "Constant"
        ]

    def forward(self, *inputs):
        values = dict(zip(self.inputs, inputs))
        values.update({key: getattr(self, name) for key, name in self.names.items()})
        values.update(self.static)
        for function, attributes, names, results in self.nodes:
            arguments = [values[name] if name else None for name in names]
            made = arguments[0] if function is None else function(attributes, *arguments)
            for name, value in zip(results, made if isinstance(made, (tuple, list)) else (made,)):
                values[name] = value
        return tuple(values[name] for name in self.outputs)


def load(path):
    return onnx.load(str(path))
