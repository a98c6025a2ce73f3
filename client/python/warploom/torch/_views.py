"""Rows of TABLE: copies, views, tensors without operands (such as constants), and gathers."""

import math

import torch

from ._aten import prepared, result_of, row, where
from ._text import Unsupported

aten = torch.ops.aten


# The functions below lower copies and views.
@row(
    aten.clone.default, aten.alias.default, aten.detach.default, aten.lift_fresh_copy.default, aten.contiguous.default,
    aten._to_copy.default, torch.ops.prims.convert_element_type.default, aten.copy.default,
)  # fmt: skip
def copy(g, node, x, *rest, **options):
    if node.target == aten.copy.default:
        x = rest[0]
    result, shape = result_of(node)
    return prepared(g, x, result, shape)


@row(aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims,
     aten.squeeze.default, aten.view_copy.default)  # fmt: skip
def view(g, node, x, *_):
    return g.reshape(x, result_of(node)[1])


@row(aten.permute.default, aten.permute_copy.default)
def permute(g, node, x, dims):
    return g.transpose(x, dims)


@row(aten.t.default)
def t(g, node, x):
    return g.transpose(x, range(len(x.shape))[::-1])


@row(aten.transpose.int)
def transpose(g, node, x, a, b):
    perm = list(range(len(x.shape)))
    perm[a], perm[b] = perm[b], perm[a]
    return g.transpose(x, perm)


@row(aten.expand.default)
def expand(g, node, x, size, implicit=False):
    return g.broadcast(x, result_of(node)[1])


@row(torch.ops.prims.broadcast_in_dim.default)
def broadcast_in_dim(g, node, x, shape, axes):
    return g.broadcast(g.reshape(x, [x.shape[axes.index(i)] if i in axes else 1 for i in range(len(shape))]), shape)


@row(aten.repeat.default)
def repeat(g, node, x, times):
    x = g.reshape(x, [1] * (len(times) - len(x.shape)) + list(x.shape))
    pairs = [n for pair in zip(times, x.shape) for n in pair]
    apart = g.reshape(x, [n for extent in x.shape for n in (1, extent)])
    return g.reshape(g.broadcast(apart, pairs), result_of(node)[1])


def places_at(g, size, stride, offset=0):
    """Returns a Value of shape `size` whose elements are offsets in flat memory: `offset` plus the sum of each element's indices times
    `stride`."""
    places = g.constant(offset, "i64", size)
    for axis, step in enumerate(stride):
        places = g.op("add", places, g.op("mul", g.iota(axis, "i64", size), g.constant(step, "i64", size)))
    return places


def at_strides(g, x, size, stride, offset):
    """Returns the elements of x, taken as a flat array, at the offsets that places_at() returns."""
    listed = g.reshape(places_at(g, size, stride, offset), [math.prod(size)])
    return g.reshape(g.take_along(g.reshape(x, [math.prod(x.shape)]), listed, 0), size)


@row(aten.as_strided.default, aten.as_strided_copy.default)
def as_strided(g, node, x, size, stride, offset=None):
    whole = node.args[0].meta["val"]
    if not whole.is_contiguous() or whole.storage_offset() != 0:
        raise Unsupported("strides over what does not lie side by side")
    steps = [math.prod(size[i + 1 :]) for i in range(len(size))]
    if not offset and math.prod(size) == math.prod(x.shape) and all(a == b or n == 1 for a, b, n in zip(stride, steps, size)):
        return g.reshape(x, size)
    return at_strides(g, x, size, stride, offset or 0)


@row(aten.diagonal.default)
def diagonal(g, node, x, offset=0, first=0, second=1):
    first, second = first % len(x.shape), second % len(x.shape)
    steps = [math.prod(x.shape[i + 1 :]) for i in range(len(x.shape))]
    stride = [step for i, step in enumerate(steps) if i not in (first, second)] + [steps[first] + steps[second]]
    return at_strides(g, x, result_of(node)[1], stride, offset * steps[second] if offset > 0 else -offset * steps[first])


@row(aten.unfold.default)
def unfold(g, node, x, axis, size, step):
    if not x.shape:
        return g.reshape(x, result_of(node)[1])
    return g.window(x, [axis % len(x.shape)], [size], [step], [1])


def start_in(extent, start):
    """Returns the first index of a slice: None means 0, a negative index counts from the end, and the result is clamped to the axis."""
    start = start or 0
    return min(max(start + (extent if start < 0 else 0), 0), extent)


@row(aten.slice.Tensor)
def slice_(g, node, x, dim=0, start=None, end=None, step=1):
    dim %= len(x.shape)
    start = start_in(x.shape[dim], start)
    return g.slice(x, dim, start, result_of(node)[1][dim], step)


@row(aten.narrow_copy.default)
def narrow(g, node, x, dim, start, length):
    return g.slice(x, dim % len(x.shape), start_in(x.shape[dim], start), length)


@row(aten.select.int)
def select(g, node, x, dim, index):
    dim %= len(x.shape)
    return g.reshape(g.slice(x, dim, index % x.shape[dim], 1), result_of(node)[1])


@row(aten.split_with_sizes.default, aten.split.Tensor)
def split(g, node, x, sizes, dim=0):
    dim %= len(x.shape)
    if isinstance(sizes, int):
        sizes = [min(sizes, x.shape[dim] - at) for at in range(0, x.shape[dim], sizes)]
    parts, at = [], 0
    for size in sizes:
        parts.append(g.slice(x, dim, at, size))
        at += size
    return tuple(parts)


@row(aten.unbind.int, aten.unbind_copy.int)
def unbind(g, node, x, dim=0):
    dim %= len(x.shape)
    shape = [n for i, n in enumerate(x.shape) if i != dim]
    return tuple(g.reshape(g.slice(x, dim, i, 1), shape) for i in range(x.shape[dim]))


@row(aten.cat.default)
def cat(g, node, tensors, dim=0):
    dtype, shape = result_of(node)
    parts = [g.cast(tensor, dtype) for tensor in tensors if tensor.shape != (0,) and 0 not in tensor.shape]
    if not parts:
        raise Unsupported("a concatenation of nothing")
    return g.concat(parts, dim % len(shape))


def padded(g, x, low, high, number):
    """Returns x padded with a number: `low` elements before and `high` after each axis. Negative counts cut elements off."""
    for axis in range(len(x.shape)):
        if low[axis] < 0 or high[axis] < 0:
            cut = max(-low[axis], 0)
            x = g.slice(x, axis, cut, x.shape[axis] - cut - max(-high[axis], 0))
    return g.pad(x, [max(n, 0) for n in low], [max(n, 0) for n in high], number)


@row(aten.constant_pad_nd.default)
def constant_pad(g, node, x, pad, value=0):
    low, high = [0] * len(x.shape), [0] * len(x.shape)
    for i in range(len(pad) // 2):
        low[-1 - i], high[-1 - i] = pad[2 * i], pad[2 * i + 1]
    return padded(g, x, low, high, value)


@row(aten.flip.default)
def flip(g, node, x, dims):
    for dim in dims:
        x = g.slice(x, dim % len(x.shape), x.shape[dim] - 1, x.shape[dim], -1)
    return x


@row(aten.roll.default)
def roll(g, node, x, shifts, dims=()):
    shape = x.shape
    if not dims:
        x, dims = g.reshape(x, [math.prod(shape)]), [0]
    for shift, dim in zip(shifts, dims):
        dim %= len(x.shape)
        shift %= x.shape[dim]
        if shift != 0:
            kept = x.shape[dim] - shift
            x = g.concat([g.slice(x, dim, kept, shift), g.slice(x, dim, 0, kept)], dim)
    return g.reshape(x, shape)


@row(aten.slice_scatter.default)
def slice_scatter(g, node, x, part, dim=0, start=None, end=None, step=1):
    dim %= len(x.shape)
    start = start_in(x.shape[dim], start)
    end = start + part.shape[dim]
    if step != 1:
        raise Unsupported("a slice with steps that is replaced")
    parts = [g.slice(x, dim, 0, start)] if start > 0 else []
    parts.append(g.cast(part, x.dtype))
    if end < x.shape[dim]:
        parts.append(g.slice(x, dim, end, x.shape[dim] - end))
    return g.concat(parts, dim)


@row(aten.select_scatter.default)
def select_scatter(g, node, x, part, dim, index):
    dim, part = dim % len(x.shape), g.reshape(part, [*part.shape[: dim % len(x.shape)], 1, *part.shape[dim % len(x.shape) :]])
    return slice_scatter(g, node, x, part, dim, index % x.shape[dim])


@row(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(g, node, x, mask, number):
    return where(g, node, mask, number, x)


# The functions below lower operators that make a tensor without reading one.
@row(aten.fill.Scalar)
def fill(g, node, x, number):
    return g.constant(number, *result_of(node))


@row(aten.full.default, aten.full_like.default, aten.new_full.default)
def full(g, node, *arguments, **options):
    return g.constant(arguments[2] if node.target == aten.new_full.default else arguments[1], *result_of(node))


# The elements of an empty tensor are undefined in eager; here they are 0.
@row(aten.empty.memory_format, aten.empty_permuted.default, torch.ops.prims.empty_strided.default)
def empty(g, node, *arguments, **options):
    return g.constant(0, *result_of(node))


@row(aten.scalar_tensor.default)
def scalar_tensor(g, node, number, **options):
    return g.constant(number, *result_of(node))


for _number, _name in ((0, "zeros"), (1, "ones")):
    for _packet in (getattr(aten, _name), getattr(aten, f"{_name}_like"), getattr(aten, f"new_{_name}")):
        row(_packet.default)(lambda g, node, *_, _number=_number, **options: g.constant(_number, *result_of(node)))


@row(aten.arange.start_step, aten.arange.default, aten.arange.start)
def arange(g, node, *arguments, **options):
    start, step = 0, 1
    if node.target != aten.arange.default:
        start, step = arguments[0], arguments[2] if len(arguments) > 2 else 1
    dtype, shape = result_of(node)
    value = g.iota(0, dtype, shape)
    if step != 1:
        value = g.op("mul", value, g.constant(step, dtype, shape))
    return g.op("add", value, g.constant(start, dtype, shape)) if start != 0 else value


# The functions below lower gathers.
@row(aten.embedding.default)
def embedding(g, node, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return index_along(g, weight, from_front(g, indices, weight.shape[0]), 0)


@row(aten.index_select.default)
def index_select(g, node, x, dim, index):
    if not x.shape:
        return g.reshape(x, result_of(node)[1])
    return index_along(g, x, from_front(g, index, x.shape[dim]), dim % len(x.shape))


def index_along(g, x, index, axis):
    """Returns x[.., index, ..]: the axes of the index replace one axis of x."""
    rows = index.shape
    flat = [*x.shape[:axis], math.prod(rows), *x.shape[axis + 1 :]]
    listed = g.reshape(index, [1] * axis + [math.prod(rows)] + [1] * (len(x.shape) - axis - 1))
    g.bound(index, x.shape[axis])
    return g.reshape(g.take_along(x, g.broadcast(listed, flat), axis), [*x.shape[:axis], *rows, *x.shape[axis + 1 :]])


@row(aten.index.Tensor)
def index(g, node, x, indices):
    given = [i for i, index in enumerate(indices) if index is not None]
    if any(indices[i].dtype in ("b1", "u8") for i in given):
        raise Unsupported("an index by a mask")
    if given != list(range(given[0], given[-1] + 1)):  # as in NumPy, indexed axes that are not neighbours come first
        x = g.transpose(x, given + [i for i in range(len(x.shape)) if i not in given])
        indices, given = [indices[i] for i in given], list(range(len(given)))
    x, place = merged(g, x, indices, given)
    return index_along(g, x, place, given[0])


def merged(g, x, indices, given):
    """Returns x with the neighbouring axes `given` merged into one, and the indices of these axes merged into one index."""
    if len(given) == 1:
        return x, indices[given[0]]
    shape = torch.broadcast_shapes(*(indices[i].shape for i in given))
    extents, place = [x.shape[i] for i in given], None
    for i, extent in zip(given, extents):
        g.bound(indices[i], extent)
        one = placed(g, g.broadcast(g.cast(indices[i], "i64"), shape), extent)
        place = one if place is None else g.op("add", g.op("mul", place, g.constant(extent, "i64", shape)), one)
    return g.reshape(x, [*x.shape[: given[0]], math.prod(extents), *x.shape[given[-1] + 1 :]]), place


def placed(g, index, extent):
    """Returns an index whose negative elements are replaced by those that count from the beginning of the axis. They are looked up in an
    iota, since a lookup reports elements that are out of range."""
    count = math.prod(index.shape)
    g.bound(index, extent)
    if count == 0:
        return index
    return g.reshape(g.take_along(g.iota(0, "i64", [extent]), g.reshape(index, [count]), 0), index.shape)


def from_front(g, index, extent):
    """Returns an index for operators that do not count negative indices from the end: negative elements are moved out of range, so that
    they are errors as in eager."""
    g.bound(index, extent)
    beyond = g.op("sub", index, g.constant(extent, index.dtype, index.shape))
    return g.op("select", g.op("lt", index, g.constant(0, index.dtype, index.shape)), beyond, index)


@row(aten.gather.default)
def gather(g, node, x, dim, index, sparse_grad=False):
    for axis in range(len(x.shape)):
        if axis != dim % len(x.shape):
            x = g.slice(x, axis, 0, index.shape[axis])
    return g.take_along(x, from_front(g, index, x.shape[dim % len(x.shape)]), dim % len(x.shape))
