"""Rows of TABLE: reductions, products, convolutions and pools."""

import math

import torch

from ._aten import pointwise, result_of, row, wide
from ._text import FLOATS, Unsupported, lowest
from ._views import padded, places_at

aten, prims = torch.ops.aten, torch.ops.prims


# The functions below lower reductions.
def axes_of(x, dims):
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return list(range(len(x.shape)))
    return sorted({dim % max(len(x.shape), 1) for dim in ([dims] if isinstance(dims, int) else dims)}) if x.shape else []


def reduced(g, node, how, x, dims, dtype=None):
    result, shape = result_of(node)
    value = g.reduce(how, g.cast(x, dtype or result), axes_of(x, dims))
    return g.cast(g.reshape(value, shape), result)


@row(aten.sum.dim_IntList, aten.sum.default, prims.sum.default)
def sum_(g, node, x, dims=None, keepdim=False, dtype=None, output_dtype=None):
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


@row(aten.prod.default, aten.prod.dim_int, prims.prod.default)
def prod(g, node, x, dim=None, keepdim=False, dtype=None, output_dtype=None):
    return reduced(g, node, "prod", x, dim)


for _how, _packet in (("max", aten.any), ("min", aten.all)):

    @row(_packet.default, _packet.dim, _packet.dims)
    def _any_or_all(g, node, x, dims=None, keepdim=False, _how=_how):
        return reduced(g, node, _how, g.cast(x, "b1"), dims, "i32")


@row(aten.var.correction, aten.var.dim)
def var(g, node, x, dims=None, correction=1, keepdim=False):
    return variance(g, node.meta["val"], x, dims, correction)[0]


@row(prims.var.default)
def prims_var(g, node, x, dims, correction=1, output_dtype=None):
    return variance(g, node.meta["val"], x, dims, correction)[0]


@row(aten.var_mean.correction)
def var_mean(g, node, x, dims=None, correction=1, keepdim=False):
    return variance(g, node.meta["val"][0], x, dims, correction)


def variance(g, result, x, dims, correction):
    """Returns the variance and the mean; those of narrow floats are computed in f32."""
    axes = axes_of(x, dims)
    dtype, x = x.dtype, g.cast(x, wide(x.dtype))
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
    return tuple(g.cast(g.reshape(value, shape), dtype) for value in (variance_, mean_))


# The rows below lower matrix products.
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


@row(aten.addbmm.default)
def addbmm(g, node, x, a, b, beta=1, alpha=1):
    product = pointwise(g, "mul", node, [g.contract(a, b, "bmk,bkn->mn"), alpha])
    return pointwise(g, "add", node, [product, pointwise(g, "mul", node, [x, beta])])


@row(aten._scaled_dot_product_flash_attention_for_cpu.default)
def attention(g, node, q, k, v, dropout=0.0, is_causal=False, attn_mask=None, scale=None):
    """Returns the result of attention and, for each row, the logarithm of the sum of exponentials, which the backward pass uses."""
    if dropout:
        raise Unsupported("attention with dropout")
    if q.shape[:2] != k.shape[:2]:
        raise Unsupported("attention of more heads than there are of keys")
    rows, keys = q.shape[2], k.shape[2]
    scores = g.contract(q, k, "bhmd,bhnd->bhmn")
    scores = g.op("mul", scores, g.constant(1 / math.sqrt(q.shape[3]) if scale is None else scale, q.dtype, scores.shape))
    if is_causal:
        seen = g.op("le", g.iota(3, "i32", scores.shape), g.iota(2, "i32", scores.shape))
        scores = g.op("select", seen, scores, g.constant(-math.inf, q.dtype, scores.shape))
    if attn_mask is not None:
        scores = g.op("add", scores, g.broadcast(g.cast(attn_mask, q.dtype), scores.shape))
    each = [*q.shape[:2], rows, 1]

    def along(value):
        return g.broadcast(g.reshape(value, each), [*q.shape[:2], rows, keys])

    greatest = g.reduce("max", scores, [3])
    weights = g.op("exp", g.op("sub", scores, along(greatest)))
    total = g.reduce("sum", weights, [3])
    value = g.contract(g.op("div", weights, along(total)), v, "bhmn,bhne->bhme")
    logarithm = g.op("add", greatest, g.op("log", total))
    # If a mask hides every key from a query, all scores of its row are -inf. The row's result and its logarithm of the sum are then 0.
    none = g.op("eq", greatest, g.constant(-math.inf, greatest.dtype, greatest.shape))
    logarithm = g.op("select", none, g.constant(0, logarithm.dtype, logarithm.shape), logarithm)
    rows_without = g.broadcast(g.reshape(none, each), value.shape)
    value = g.op("select", rows_without, g.constant(0, value.dtype, value.shape), value)
    return value, logarithm


def each_axis(values, rank):
    """Returns a list with a number for each of `rank` axes; a single number is repeated for all of them."""
    return [values[0]] * rank if len(values) == 1 else list(values)


def spread(g, x, stride):
    """Returns an image with stride - 1 zeros between neighbouring elements of each axis, as a transposed convolution needs it."""
    for axis, step in enumerate(stride, 2):
        if step > 1:
            extent, rank = x.shape[axis], len(x.shape)
            x = g.reshape(x, [*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]])
            x = g.pad(x, [0] * (rank + 1), [step - 1 if i == axis + 1 else 0 for i in range(rank + 1)], 0)
            x = g.reshape(x, [*x.shape[:axis], extent * step, *x.shape[axis + 2 :]])
            x = g.slice(x, axis, 0, (extent - 1) * step + 1)
    return x


def turned(g, w, groups):
    """Returns the weight with which a convolution of a spread image equals a transposed convolution with w: the taps are reversed, and
    output channels come first."""
    inputs, outputs, *taps = w.shape
    w = g.transpose(g.reshape(w, [groups, inputs // groups, outputs, *taps]), [0, 2, 1, *range(3, len(taps) + 3)])
    w = g.reshape(w, [groups * outputs, inputs // groups, *taps])
    for axis, extent in enumerate(taps, 2):
        w = g.slice(w, axis, extent - 1, extent, -1) if extent > 1 else w
    return w


@row(aten.convolution.default)
def convolution(g, node, x, w, bias, stride, padding, dilation, transposed, output_padding, groups):
    rank = len(x.shape) - 2
    if rank < 1:
        raise Unsupported("a convolution without axes")
    stride, padding, dilation = (each_axis(values, rank) for values in (stride, padding, dilation))
    taps, high = list(w.shape[2:]), padding
    if transposed:
        x, w = spread(g, x, stride), turned(g, w, groups)
        padding = [(tap - 1) * step - given for tap, step, given in zip(taps, dilation, padding)]
        high = [given + more for given, more in zip(padding, each_axis(output_padding, rank))]
        stride = [1] * rank
    x = padded(g, x, [0, 0, *padding], [0, 0, *high], 0)
    positions, letters = "pqrstu"[:rank], "hijdef"[:rank]
    if all(tap == 1 for tap in taps):  # a convolution whose window has one element is a matrix product, for which no windows are made
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


def first_place(g, x, extreme, axes, places, last, pick="min"):
    """Returns the position of the first occurrence of an extreme along some axes: the least of the `places` of elements that equal the
    extreme or are NaN (an extreme is NaN if any element is); `last` if there are no such elements. With pick="max", returns the position of
    the last NaN."""
    kept = [1 if axis in axes else n for axis, n in enumerate(x.shape)]
    spread = g.broadcast(g.reshape(extreme, kept), x.shape)
    is_it = g.op("eq", x, spread) if pick == "min" else g.op("ne", x, x)
    if x.dtype in FLOATS and pick == "min":  # where an element is NaN, the extreme is NaN
        is_it = g.op("logical_or", is_it, g.op("ne", x, x))
    return g.reduce(pick, g.op("select", is_it, places, g.constant(last, places.dtype, x.shape)), axes)


# The functions below lower pools.
def windows(g, x, size, stride, padding, dilation, out, number):
    """Returns the windows of a pool over the last axes of x, which is padded with a number, and the axes of the windows' taps. `out`: the
    extents of the pool's result."""
    rank = len(size)
    lead = len(x.shape) - rank
    high = [(n - 1) * step + (tap - 1) * far + 1 - extent - low
            for n, step, tap, far, extent, low in zip(out, stride, size, dilation, x.shape[lead:], padding)]  # fmt: skip
    x = padded(g, x, [0] * lead + padding, [0] * lead + high, number)
    return g.window(x, range(lead, lead + rank), size, stride, dilation), [lead + rank + axis for axis in range(rank)]


def pool_of(size, stride, padding, dilation, out):
    rank = len(size)
    return size, each_axis(stride or size, rank), each_axis(padding, rank), each_axis(dilation, rank), out


def max_pool(g, node, x, rank, kernel_size, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
    size, out = each_axis(kernel_size, rank), [int(n) for n in node.meta["val"][0].shape[-rank:]]
    pool = pool_of(size, stride, padding, dilation, out)
    value, axes = windows(g, x, *pool, lowest(x.dtype))
    greatest = g.reduce("max", value, axes)
    if all(user.args[1] == 0 for user in node.users):
        return (greatest,)
    image = x.shape[-rank:]  # the image's extents; PyTorch's max pools return positions that are numbers of elements within one image
    steps = [0] * (len(x.shape) - rank) + [math.prod(image[axis + 1 :]) for axis in range(rank)]
    # Padding gets the highest position, so that the position of an element is found even if its value equals that of the padding.
    places, _ = windows(g, places_at(g, x.shape, steps), *pool, math.prod(image) - 1)
    first = first_place(g, value, greatest, axes, places, math.prod(image) - 1)
    if x.dtype in FLOATS:  # where an element is NaN, PyTorch's pools return the position of the last NaN
        at_nan = first_place(g, value, greatest, axes, places, 0, "max")
        first = g.op("select", g.op("ne", greatest, greatest), at_nan, first)
    return greatest, first


def avg_pool(g, node, x, rank, kernel_size, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True, divisor_override=None):
    size, out = each_axis(kernel_size, rank), list(result_of(node)[1][-rank:])
    pool = pool_of(size, stride, padding, (1,), out)
    value, axes = windows(g, x, *pool, 0)
    total = g.reduce("sum", value, axes)
    if divisor_override or (not ceil_mode and (count_include_pad or not any(pool[2]))):
        return g.op("div", total, g.constant(float(divisor_override or math.prod(size)), total.dtype, total.shape))
    # Windows at the border have fewer elements. Their number is the sum of ones over the window.
    ones = g.constant(1, x.dtype, x.shape[-rank:])
    low = pool[2]
    if count_include_pad:
        ones, low = g.constant(1, x.dtype, [n + 2 * more for n, more in zip(ones.shape, low)]), [0] * rank
    counted, taps = windows(g, ones, *pool[:2], low, *pool[3:], 0)
    return g.op("div", total, g.broadcast(g.reduce("sum", counted, taps), total.shape))


def adaptive(g, node, x, rank, output_size, pool):
    """Computes an adaptive pool, which is given the extents of its result, as a plain pool. Raises Unsupported if its windows differ in
    size."""
    image, out = x.shape[-rank:], each_axis(output_size, rank) if not isinstance(output_size, int) else [output_size] * rank
    if any(extent % count for extent, count in zip(image, out)):
        raise Unsupported("an adaptive pool of windows that differ")
    size = [extent // count for extent, count in zip(image, out)]
    return pool(g, node, x, rank, size, size)


for _rank, _max, _avg in ((2, aten.adaptive_max_pool2d, None), (3, aten.adaptive_max_pool3d, aten._adaptive_avg_pool3d)):
    row(_max.default)(lambda g, node, x, size, _rank=_rank: adaptive(g, node, x, _rank, size, max_pool))
    if _avg is not None:
        row(_avg.default)(lambda g, node, x, size, _rank=_rank: adaptive(g, node, x, _rank, size, avg_pool))

for _rank, _max, _avg in ((2, aten.max_pool2d_with_indices, aten.avg_pool2d), (3, aten.max_pool3d_with_indices, aten.avg_pool3d)):
    row(_max.default)(lambda g, node, x, *rest, _rank=_rank, **named: max_pool(g, node, x, _rank, *rest, **named))
    row(_avg.default)(lambda g, node, x, *rest, _rank=_rank, **named: avg_pool(g, node, x, _rank, *rest, **named))
