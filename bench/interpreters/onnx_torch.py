"""An ONNX graph as a torch module, so that torch.compile can be timed on the models of bench/models.py. The module goes
through the nodes and calls torch by a table of op -> function, which has the ops of those models."""

import functools

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper

from interpreters.table import Table

TYPES = {
    onnx.TensorProto.FLOAT: torch.float32,
    onnx.TensorProto.DOUBLE: torch.float64,
    onnx.TensorProto.INT32: torch.int32,
    onnx.TensorProto.INT64: torch.int64,
    onnx.TensorProto.BOOL: torch.bool,
}
TABLE = Table("torch")
op = TABLE.op

TABLE.simple({
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
    "Abs": torch.abs,
    "Log": torch.log,
    "Greater": torch.greater,
    "Less": torch.less,
    "Softplus": F.softplus,
    "HardSwish": F.hardswish,
})


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


@op("ConvTranspose")
def conv_transpose(a, x, w, bias=None):
    rank = x.dim() - 2
    pads = a.get("pads", [0] * 2 * rank)
    if pads[:rank] != pads[rank:]:
        raise NotImplementedError("ConvTranspose with different pads at both ends")
    function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
    out = a.get("output_padding", 0)
    return function(x, w, bias, a.get("strides", 1), pads[:rank], out, a.get("group", 1), a.get("dilations", 1))


@op("HardSigmoid")
def hard_sigmoid(a, x):
    return torch.clamp(x * a.get("alpha", 0.2) + a.get("beta", 0.5), 0.0, 1.0)


@op("Min")
def least(a, *values):
    return functools.reduce(torch.minimum, values)


@op("Cast")
def cast(a, x):
    return x.to(TYPES[a["to"]])


@op("Gather")
def gather(a, x, index):
    axis = a.get("axis", 0) % x.dim()
    if index.dim() == 0:
        return x.select(axis, int(index))
    return torch.index_select(x, axis, index.reshape(-1)).reshape(x.shape[:axis] + index.shape + x.shape[axis + 1 :])


@op("MaxPool")
def max_pool(a, x):
    rank = x.dim() - 2
    pads = a.get("pads", [0] * 2 * rank)
    return F.max_pool2d(x, a["kernel_shape"], a.get("strides", 1), pads[:rank], a.get("dilations", 1), bool(a.get("ceil_mode")))


@op("Reshape", shaped=True)
def reshape(a, x, shape):
    return x.reshape([x.shape[i] if s == 0 else s for i, s in enumerate(shape)])


@op("Transpose")
def transpose(a, x):
    return x.permute(a.get("perm", list(reversed(range(x.dim())))))


@op("Unsqueeze", shaped=True)
def unsqueeze(a, x, axes):
    rank = x.dim() + len(axes)
    for axis in sorted(i % rank for i in axes):
        x = x.unsqueeze(axis)
    return x


@op("Squeeze", shaped=True)
def squeeze(a, x, axes=None):
    return x.squeeze() if axes is None else x.squeeze(tuple(axes))


@op("Expand", shaped=True)
def expand(a, x, shape):
    return x.expand(torch.broadcast_shapes(x.shape, shape))


@op("Concat")
def concat(a, *parts):
    return torch.cat(parts, a["axis"])


@op("Split", shaped=True)
def split(a, x, sizes=None):
    if sizes is not None:
        return torch.split(x, sizes, a.get("axis", 0))
    return torch.chunk(x, a["num_outputs"], a.get("axis", 0))


@op("Slice", shaped=True)
def slice_(a, x, starts, ends, axes=None, steps=None):
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    index = [slice(None)] * x.dim()
    for start, end, axis, step in zip(starts, ends, axes, steps):
        index[axis] = slice(start, min(end, 2**62), step)
    return x[tuple(index)]


@op("Pad", shaped=True)
def pad(a, x, pads, value=None, axes=None):
    rank = x.dim()
    pairs = [(pads[i], pads[rank + i]) for i in reversed(range(rank))]
    return F.pad(x, [p for pair in pairs for p in pair], value=value or 0.0)


@op("GatherElements")
def gather_elements(a, x, index):
    return torch.gather(x, a.get("axis", 0), index)


@op("ReduceMean", shaped=True)
def reduce_mean(a, x, axes=None):
    axes = a.get("axes") if axes is None else axes
    return torch.mean(x, axes, bool(a.get("keepdims", 1)))


@op("ReduceSum", shaped=True)
def reduce_sum(a, x, axes=None):
    axes = a.get("axes") if axes is None else axes
    return torch.sum(x, axes, bool(a.get("keepdims", 1)))


class OnnxModule(torch.nn.Module):
    """`weights`: arrays by name, for graph inputs that are weights. Initializers become constants of the module."""

    def __init__(self, model, weights):
        super().__init__()
        TABLE.check(model)
        self.inputs = [i.name for i in model.graph.input if i.name not in weights]
        self.outputs = [o.name for o in model.graph.output]
        # torch.compile should see one graph with static shapes, so shapes, axes and attributes are numbers.
        known = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer} | dict(weights)
        for node in model.graph.node:
            if node.op_type == "Constant":
                known[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        self.names, self.nodes = {}, []
        for node in model.graph.node:
            if node.op_type == "Constant":
                continue
            numbers = {n: known[n].tolist() for n in node.input[1:] if n in known and node.op_type in TABLE.shaped}
            for name in node.input:
                if name in known and name not in numbers and name not in self.names:
                    self.names[name] = f"w{len(self.names)}"
                    self.register_buffer(self.names[name], torch.from_numpy(np.array(known[name])))
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            self.nodes.append((TABLE.calls[node.op_type], attributes, numbers, list(node.input), list(node.output)))

    def forward(self, *inputs):
        values = dict(zip(self.inputs, inputs))
        values.update({key: getattr(self, name) for key, name in self.names.items()})
        for function, attributes, numbers, names, results in self.nodes:
            arguments = [numbers[name] if name in numbers else values[name] if name else None for name in names]
            made = function(attributes, *arguments)
            for name, value in zip(results, made if isinstance(made, (tuple, list)) else (made,)):
                values[name] = value
        return tuple(values[name] for name in self.outputs)


def load(path):
    return onnx.load(str(path))
