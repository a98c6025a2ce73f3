"""Rows of TABLE: copies, views, tensors that are made of nothing, and gathers."""

import math

import torch

from ._aten import prepared, result_of, row, where
from ._text import Unsupported

aten = torch.ops.aten


# Copies and views.
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
     aten.squeeze.default)  # fmt: skip
def view(g, node, x, *_):
    return g.reshape(x, result_of(node)[1])


@row(aten.permute.default)
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


def start_in(extent, start):
    """Where a slice begins on an axis: at 0 unless said, counted from the end if negative, and inside."""
    start = start or 0
    return min(max(start + (extent if start < 0 else 0), 0), extent)


@row(aten.slice.Tensor)
def slice_(g, node, x, dim=0, start=None, end=None, step=1):
    dim %= len(x.shape)
    start = start_in(x.shape[dim], start)
    return g.slice(x, dim, start, result_of(node)[1][dim], step)


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


@row(aten.unbind.int)
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


@row(aten.constant_pad_nd.default)
def constant_pad(g, node, x, pad, value=0):
    low, high = [0] * len(x.shape), [0] * len(x.shape)
    for i in range(len(pad) // 2):
        low[-1 - i], high[-1 - i] = pad[2 * i], pad[2 * i + 1]
    for axis in range(len(x.shape)):  # negative padding cuts
        if low[axis] < 0 or high[axis] < 0:
            cut = max(-low[axis], 0)
            x = g.slice(x, axis, cut, x.shape[axis] - cut - max(-high[axis], 0))
    return g.pad(x, [max(n, 0) for n in low], [max(n, 0) for n in high], value)


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


@row(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(g, node, x, mask, number):
    return where(g, node, mask, number, x)


# What is made of nothing.
@row(aten.fill.Scalar)
def fill(g, node, x, number):
    return g.constant(number, *result_of(node))


@row(aten.full.default, aten.full_like.default, aten.new_full.default)
def full(g, node, *arguments, **options):
    return g.constant(arguments[2] if node.target == aten.new_full.default else arguments[1], *result_of(node))


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


# Gathers.
@row(aten.embedding.default)
def embedding(g, node, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return index_along(g, weight, indices, 0)


@row(aten.index_select.default)
def index_select(g, node, x, dim, index):
    return index_along(g, x, index, dim % len(x.shape))


def index_along(g, x, index, axis):
    """x[.., index, ..]: the axes of the index take the place of one axis."""
    rows = index.shape
    flat = [*x.shape[:axis], math.prod(rows), *x.shape[axis + 1 :]]
    listed = g.reshape(index, [1] * axis + [math.prod(rows)] + [1] * (len(x.shape) - axis - 1))
    g.bound(index, x.shape[axis])
    return g.reshape(g.take_along(x, g.broadcast(listed, flat), axis), [*x.shape[:axis], *rows, *x.shape[axis + 1 :]])


@row(aten.index.Tensor)
def index(g, node, x, indices):
    given = [i for i, index in enumerate(indices) if index is not None]
    if len(given) != 1 or indices[given[0]].dtype == "b1":
        raise Unsupported("an index of several axes, or by a mask")
    return index_along(g, x, indices[given[0]], given[0])


@row(aten.gather.default)
def gather(g, node, x, dim, index, sparse_grad=False):
    for axis in range(len(x.shape)):
        if axis != dim % len(x.shape):
            x = g.slice(x, axis, 0, index.shape[axis])
    return g.take_along(x, index, dim % len(x.shape))
