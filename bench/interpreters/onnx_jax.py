"""An ONNX graph as a function of jax, so that XLA can be timed on the models of bench/models.py. The function goes through
the nodes and calls jax by a table of op -> function, which has the ops of those models. Shapes, axes and indices that are
constants of the graph become numbers of the traced program."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from onnx import helper, numpy_helper

from interpreters.table import Table

TABLE = Table("jax")
op = TABLE.op

TABLE.simple({
    "Add": jnp.add,
    "Sub": jnp.subtract,
    "Mul": jnp.multiply,
    "Div": jnp.divide,
    "Pow": jnp.power,
    "MatMul": jnp.matmul,
    "Erf": lax.erf,
    "Tanh": jnp.tanh,
    "Relu": jax.nn.relu,
    "Sigmoid": jax.nn.sigmoid,
    "Sqrt": jnp.sqrt,
    "Neg": jnp.negative,
    "Abs": jnp.abs,
    "Log": jnp.log,
    "Exp": jnp.exp,
    "Reciprocal": jnp.reciprocal,
    "Where": jnp.where,
    "Greater": jnp.greater,
    "Less": jnp.less,
    "Softplus": jax.nn.softplus,
    "HardSwish": jax.nn.hard_swish,
})


@op("Min")
def least(a, *values):
    return functools.reduce(jnp.minimum, values)


@op("HardSigmoid")
def hard_sigmoid(a, x):
    return jnp.clip(x * a.get("alpha", 0.2) + a.get("beta", 0.5), 0.0, 1.0)


@op("Softmax")
def softmax(a, x):
    return jax.nn.softmax(x, a.get("axis", -1))


@op("LogSoftmax")
def log_softmax(a, x):
    return jax.nn.log_softmax(x, a.get("axis", -1))


@op("LayerNormalization")
def layer_norm(a, x, scale, shift=None):
    axes = tuple(range(a.get("axis", -1) % x.ndim, x.ndim))
    centred = x - x.mean(axes, keepdims=True)
    made = centred * lax.rsqrt((centred * centred).mean(axes, keepdims=True) + a.get("epsilon", 1e-5)) * scale
    return made if shift is None else made + shift


@op("BatchNormalization")
def batch_norm(a, x, scale, shift, mean, variance):
    scale = scale * lax.rsqrt(variance + a.get("epsilon", 1e-5))
    channels = (-1,) + (1,) * (x.ndim - 2)
    return x * scale.reshape(channels) + (shift - mean * scale).reshape(channels)


@op("Gemm")
def gemm(a, x, y, z=None):
    out = ((x.T if a.get("transA") else x) @ (y.T if a.get("transB") else y)) * a.get("alpha", 1.0)
    return out if z is None else out + z * a.get("beta", 1.0)


def padding(a, rank):
    pads = a.get("pads", [0] * 2 * rank)
    return list(zip(pads[:rank], pads[rank:]))


def with_bias(x, bias):
    return x if bias is None else x + bias.reshape((-1,) + (1,) * (x.ndim - 2))


@op("Conv")
def conv(a, x, w, bias=None):
    rank = x.ndim - 2
    ones = [1] * rank
    strides, dilations = a.get("strides", ones), a.get("dilations", ones)
    made = lax.conv_general_dilated(
        x, w, strides, padding(a, rank), rhs_dilation=dilations, feature_group_count=a.get("group", 1)
    )
    return with_bias(made, bias)


@op("ConvTranspose")
def conv_transpose(a, x, w, bias=None):
    rank = x.ndim - 2
    ones = [1] * rank
    if a.get("group", 1) != 1:
        raise NotImplementedError("ConvTranspose in groups")
    dilations, more = a.get("dilations", ones), a.get("output_padding", [0] * rank)
    edges = [
        (d * (k - 1) - low, d * (k - 1) - high + m)
        for d, k, m, (low, high) in zip(dilations, w.shape[2:], more, padding(a, rank))
    ]
    turned = jnp.flip(jnp.swapaxes(w, 0, 1), range(2, w.ndim))
    made = lax.conv_general_dilated(x, turned, ones, edges, lhs_dilation=a.get("strides", ones), rhs_dilation=dilations)
    return with_bias(made, bias)


@op("MaxPool")
def max_pool(a, x):
    rank = x.ndim - 2
    if a.get("ceil_mode"):
        raise NotImplementedError("MaxPool with ceil_mode")
    ones = [1] * rank
    window, strides = (1, 1, *a["kernel_shape"]), (1, 1, *a.get("strides", ones))
    edges = [(0, 0), (0, 0), *padding(a, rank)]
    return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, edges, window_dilation=(1, 1, *a.get("dilations", ones)))


@op("Reshape", shaped=True)
def reshape(a, x, shape):
    return x.reshape([x.shape[i] if s == 0 else int(s) for i, s in enumerate(shape)])


@op("Transpose")
def transpose(a, x):
    return jnp.transpose(x, a.get("perm"))


@op("Unsqueeze", shaped=True)
def unsqueeze(a, x, axes):
    return jnp.expand_dims(x, tuple(int(axis) for axis in axes))


@op("Squeeze", shaped=True)
def squeeze(a, x, axes=None):
    return jnp.squeeze(x, None if axes is None else tuple(int(axis) for axis in axes))


@op("Expand", shaped=True)
def expand(a, x, shape):
    return jnp.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(int(s) for s in shape)))


@op("Concat")
def concat(a, *parts):
    return jnp.concatenate(parts, a["axis"])


@op("Split", shaped=True)
def split(a, x, sizes=None):
    axis = a.get("axis", 0)
    if sizes is None:
        piece = math.ceil(x.shape[axis] / a["num_outputs"])
        return jnp.split(x, list(range(piece, x.shape[axis], piece)), axis)
    return jnp.split(x, np.cumsum(sizes)[:-1].tolist(), axis)


@op("Slice", shaped=True)
def slice_(a, x, starts, ends, axes=None, steps=None):
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    index = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps):
        index[int(axis)] = slice(int(start), int(min(end, 2**62)), int(step))
    return x[tuple(index)]


@op("Pad", shaped=True)
def pad(a, x, pads, value=None, axes=None):
    return jnp.pad(x, [(int(low), int(high)) for low, high in zip(pads[: x.ndim], pads[x.ndim :])], constant_values=value or 0.0)


@op("Cast")
def cast(a, x):
    return x.astype(helper.tensor_dtype_to_np_dtype(a["to"]))


@op("Gather", shaped=True)
def gather(a, x, index):
    if isinstance(index, np.ndarray) and index.ndim == 0:
        return lax.index_in_dim(x, int(index), a.get("axis", 0), keepdims=False)
    return jnp.take(x, index, a.get("axis", 0))


@op("GatherElements")
def gather_elements(a, x, index):
    return jnp.take_along_axis(x, index, a.get("axis", 0))


@op("ReduceMean", shaped=True)
def reduce_mean(a, x, axes=None):
    return jnp.mean(x, axes_of(a, axes), keepdims=bool(a.get("keepdims", 1)))


@op("ReduceSum", shaped=True)
def reduce_sum(a, x, axes=None):
    return jnp.sum(x, axes_of(a, axes), keepdims=bool(a.get("keepdims", 1)))


def axes_of(a, axes):
    axes = a.get("axes") if axes is None else axes
    return None if axes is None else tuple(int(axis) for axis in axes)


def compiled(model, weights, inputs):
    """The graph compiled by XLA for `inputs`, with initializers and `weights` (arrays by name) as its constants."""
    TABLE.check(model)
    known = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer} | dict(weights)
    names = [i.name for i in model.graph.input if i.name not in weights]

    def run(*arguments):
        values = dict(zip(names, arguments))
        for node in model.graph.node:
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            if node.op_type == "Constant":
                known[node.output[0]] = numpy_helper.to_array(attributes["value"])
                continue
            shaped = node.op_type in TABLE.shaped

            def value(position, name, shaped=shaped):
                if not name or name in values:
                    return values.get(name)
                return known[name] if shaped and position > 0 else jnp.asarray(known[name])

            made = TABLE.calls[node.op_type](attributes, *(value(i, name) for i, name in enumerate(node.input)))
            values.update(zip(node.output, made if isinstance(made, (tuple, list)) else (made,)))
        return tuple(values[o.name] for o in model.graph.output)

    return jax.jit(run).lower(*inputs).compile()
