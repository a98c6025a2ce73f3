"""Rows of TABLE: reductions, products, convolutions and pools."""

import math

import torch

from ._aten import pointwise, result_of, row
from ._text import Unsupported

aten = torch.ops.aten


# Reductions.
def axes_of(x, dims):
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return list(range(len(x.shape)))
    return sorted({dim % max(len(x.shape), 1) for dim in ([dims] if isinstance(dims, int) else dims)}) if x.shape else []


def reduced(g, node, how, x, dims, dtype=None):
    result, shape = result_of(node)
    value = g.reduce(how, g.cast(x, dtype or result), axes_of(x, dims))
    return g.cast(g.reshape(value, shape), result)


@row(aten.sum.dim_IntList, aten.sum.default)
def sum_(g, node, x, dims=None, keepdim=False, dtype=None):
    return reduced(g, node, "sum", x, dims)


@row(aten.mean.dim, aten.mean.default)
def mean(g, node, x, dims=None, keepdim=False, dtype=None):
    count = math.prod(x.shape[axis] for axis in axes_of(x, dims))
    result, shape = result_of(node)
    value = reduced(g, node, "sum", x, dims)
    return g.op("div", value, g.constant(float(count), result, shape))


for _how, _overload in (("max", aten.amax.default), ("min", aten.amin.default)):

    @row(_overload)
    def _extreme(g, node, x, dims=(), keepdim=False, _how=_how):
        return reduced(g, node, _how, x, dims)


@row(aten.prod.default, aten.prod.dim_int)
def prod(g, node, x, dim=None, keepdim=False, dtype=None):
    return reduced(g, node, "prod", x, dim)


for _how, _packet in (("max", aten.any), ("min", aten.all)):

    @row(_packet.default, _packet.dim, _packet.dims)
    def _any_or_all(g, node, x, dims=None, keepdim=False, _how=_how):
        return reduced(g, node, _how, g.cast(x, "b1"), dims, "i32")


@row(aten.var.correction, aten.var.dim)
def var(g, node, x, dims=None, correction=1, keepdim=False):
    return variance(g, node.meta["val"], x, dims, correction)[0]


@row(aten.var_mean.correction)
def var_mean(g, node, x, dims=None, correction=1, keepdim=False):
    return variance(g, node.meta["val"][0], x, dims, correction)


def variance(g, result, x, dims, correction):
    axes = axes_of(x, dims)
    count = math.prod(x.shape[axis] for axis in axes)
    kept = [1 if axis in axes else n for axis, n in enumerate(x.shape)]

    def over_count(value, number):
        total = g.reshape(g.reduce("sum", value, axes), kept)
        return g.op("div", total, g.constant(float(number), total.dtype, kept))

    mean_ = over_count(x, count)
    centred = g.op("sub", x, g.broadcast(mean_, x.shape))
    correction = 1 if correction is None else correction
    variance_ = over_count(g.op("mul", centred, centred), max(count - correction, 0))
    shape = tuple(int(n) for n in result.shape)
    return g.reshape(variance_, shape), g.reshape(mean_, shape)


# Products.
PRODUCTS = {"mm": "mk,kn->mn", "bmm": "bmk,bkn->bmn", "mv": "mk,k->m", "dot": "k,k->"}
for _name, _text in PRODUCTS.items():
    row(getattr(aten, _name).default)(lambda g, node, a, b, _text=_text: g.contract(a, b, _text))


@row(aten.addmm.default, aten.baddbmm.default)
def addmm(g, node, x, a, b, beta=1, alpha=1):
    product = g.contract(a, b, PRODUCTS["mm" if len(a.shape) == 2 else "bmm"])
    if alpha != 1:
        product = pointwise(g, "mul", node, [product, alpha])
    if beta == 0:
        return product
    return pointwise(g, "add", node, [product, x if beta == 1 else pointwise(g, "mul", node, [x, beta])])


def each_axis(values, rank):
    """A number for each of `rank` axes, of which one may stand for all."""
    return [values[0]] * rank if len(values) == 1 else list(values)


@row(aten.convolution.default)
def convolution(g, node, x, w, bias, stride, padding, dilation, transposed, output_padding, groups):
    rank = len(x.shape) - 2
    if transposed or rank < 1:
        raise Unsupported("a transposed convolution")
    stride, padding, dilation = (each_axis(values, rank) for values in (stride, padding, dilation))
    taps = list(w.shape[2:])
    x = g.pad(x, [0, 0, *padding], [0, 0, *padding], 0)
    positions, letters = "pqrstu"[:rank], "hijdef"[:rank]
    if all(tap == 1 for tap in taps):  # a product needs no window
        for axis in range(rank):
            x = g.slice(x, axis + 2, 0, (x.shape[axis + 2] - 1) // stride[axis] + 1, stride[axis])
        w, letters = g.reshape(w, w.shape[:2]), ""
    else:
        x = g.window(x, range(2, rank + 2), taps, stride, dilation)
    if groups == 1:
        value = g.contract(x, w, f"ac{positions}{letters},oc{letters}->ao{positions}")
    else:
        x = g.reshape(x, [x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]])
        w = g.reshape(w, [groups, w.shape[0] // groups, *w.shape[1:]])
        value = g.contract(x, w, f"agc{positions}{letters},goc{letters}->ago{positions}")
        value = g.reshape(value, [value.shape[0], value.shape[1] * value.shape[2], *value.shape[3:]])
    if bias is None:
        return value
    return g.op("add", value, g.broadcast(g.reshape(bias, [bias.shape[0]] + [1] * rank), value.shape))


# Pools.
def windows(g, x, size, stride, padding, dilation, ceil_mode, number):
    """The windows of a pool over the last two axes, with a number around them, and the axes of their taps."""
    size, stride, padding, dilation = (each_axis(values, 2) for values in (size, stride or size, padding, dilation))
    if ceil_mode:
        raise Unsupported("a pool with ceil_mode")
    lead = len(x.shape) - 2
    x = g.pad(x, [0] * lead + padding, [0] * lead + padding, number)
    return g.window(x, range(lead, lead + 2), size, stride, dilation), [lead + 2, lead + 3]


@row(aten.max_pool2d_with_indices.default)
def max_pool2d(g, node, x, kernel_size, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
    if any(user.args[1] != 0 for user in node.users):
        raise Unsupported("the indices of a pool")
    value, axes = windows(g, x, kernel_size, stride, padding, dilation, ceil_mode, -math.inf)
    return (g.reduce("max", value, axes),)


@row(aten.avg_pool2d.default)
def avg_pool2d(g, node, x, kernel_size, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True, divisor_override=None):
    if any(padding) and not count_include_pad and divisor_override is None:
        raise Unsupported("an average pool that leaves out padding")
    value, axes = windows(g, x, kernel_size, stride, padding, (1,), ceil_mode, 0)
    total = g.reduce("sum", value, axes)
    count = divisor_override or math.prod(value.shape[axis] for axis in axes)
    return g.op("div", total, g.constant(float(count), total.dtype, total.shape))
