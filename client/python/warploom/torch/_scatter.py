"""Rows of TABLE: operators that write at positions given by an index (scatter). A kernel computes each element of its result on its own, so
each position looks through all updates, and the work grows with the number of pairs of positions and updates."""

import math

import torch

from ._aten import prepared, result_of, row
from ._text import FLOATS, Unsupported
from ._views import from_front, merged, placed

aten = torch.ops.aten
MOST_PAIRS = 1 << 24


def hits(g, index, extent, axis):
    """Returns for every pair of a position (of `extent` ones) and an update whether the update writes to the position. `index` has the
    position that each update along `axis` writes to. In the result, positions are the new axis `axis`, and updates are the axis after
    it."""
    shape = [*index.shape[:axis], extent, *index.shape[axis:]]
    if math.prod(shape) > MOST_PAIRS:
        raise Unsupported("an update by an index with more pairs of places and updates than kernels look through")
    index = placed(g, index, extent)
    spread = g.broadcast(g.reshape(index, [*index.shape[:axis], 1, *index.shape[axis:]]), shape)
    return g.op("eq", spread, g.iota(axis, "i64", shape))


def last_update(g, hit, axis):
    """Returns the number of the last update of each position, and whether there is one, by reducing the axis of updates, axis + 1."""
    numbers = g.op("select", hit, g.iota(axis + 1, "i64", hit.shape), g.constant(-1, "i64", hit.shape))
    last = g.reduce("max", numbers, [axis + 1])
    none = g.constant(0, "i64", last.shape)
    return g.op("max", last, none), g.op("ge", last, none)


def combined(g, how, x, hit, updates, axis, with_own=True):
    """Returns x with the updates of each position combined by `how`: "sum", "prod", "mean", "max" or "min". `with_own`: whether the element
    of x takes part."""
    if x.dtype not in FLOATS:
        raise Unsupported(f"updates of {x.dtype} that are combined")
    step = {"sum": "add", "prod": "mul", "mean": "add"}.get(how, how)
    neutral = {"add": 0, "mul": 1, "max": -math.inf, "min": math.inf}[step]
    spread = g.broadcast(g.reshape(updates, [*updates.shape[:axis], 1, *updates.shape[axis:]]), hit.shape)
    kind = {"add": "sum", "mul": "prod"}.get(step, step)
    value = g.reduce(kind, g.op("select", hit, spread, g.constant(neutral, x.dtype, hit.shape)), [axis + 1])
    if with_own:
        value = g.op(step, x, value)
        if how != "mean":
            return value
    count = g.reduce("sum", g.cast(hit, x.dtype), [axis + 1])
    one, none = (g.constant(number, x.dtype, count.shape) for number in (1, 0))
    if with_own:
        return g.op("div", value, g.op("add", count, one))
    if how == "mean":
        value = g.op("div", value, g.op("max", count, one))
    return g.op("select", g.op("gt", count, none), value, x)


@row(aten.index_put.default, aten._unsafe_index_put.default)
def index_put(g, node, x, indices, values, accumulate=False):
    result, shape = result_of(node)
    given = [i for i, index in enumerate(indices) if index is not None]
    if len(given) == 1 and indices[given[0]].dtype == "b1" and not values.shape and not accumulate:
        mask = indices[given[0]]
        mask = g.reshape(mask, [*[1] * given[0], *mask.shape, *[1] * (len(shape) - given[0] - len(mask.shape))])
        return g.op("select", g.broadcast(mask, shape), prepared(g, values, result, shape), x)
    if any(indices[i].dtype in ("b1", "u8") for i in given) or given != list(range(given[0], given[-1] + 1)):
        raise Unsupported("an update by a mask, or by indices of axes that are not neighbours")
    first = given[0]
    x, place = merged(g, x, indices, given)
    values = g.broadcast(g.cast(values, result), [*x.shape[:first], *place.shape, *x.shape[first + 1 :]])
    # The tensors get three axes: all axes before the indexed one, the indexed one, and all axes after it.
    count, sides = math.prod(place.shape), (math.prod(x.shape[:first]), math.prod(x.shape[first + 1 :]))
    flat = g.reshape(x, [sides[0], x.shape[first], sides[1]])
    values = g.reshape(values, [sides[0], count, sides[1]])
    hit = hits(g, g.reshape(place, [count]), x.shape[first], 0)
    if accumulate:
        if result not in FLOATS:
            raise Unsupported(f"updates of {result} that add up")
        # Updates are selected, not multiplied by 0 or 1, because an infinite or NaN update must not change other positions.
        pairs = [sides[0], *hit.shape, sides[1]]
        chosen = g.broadcast(g.reshape(hit, [1, *hit.shape, 1]), pairs)
        spread = g.broadcast(g.reshape(values, [sides[0], 1, count, sides[1]]), pairs)
        flat = g.op("add", flat, g.reduce("sum", g.op("select", chosen, spread, g.constant(0, result, pairs)), [2]))
    else:
        last, is_one = last_update(g, hit, 0)
        along = [1, x.shape[first], 1]
        taken = g.take_along(values, g.broadcast(g.reshape(last, along), flat.shape), 1)
        flat = g.op("select", g.broadcast(g.reshape(is_one, along), flat.shape), taken, flat)
    return g.reshape(flat, shape)


def along_axis(x, dim, index):
    """Returns the axis of a scatter. Raises Unsupported if the index and x have different extents along another axis."""
    axis = dim % len(x.shape) if x.shape else 0
    if not x.shape or len(index.shape) != len(x.shape) or any(a != b for i, (a, b) in enumerate(zip(x.shape, index.shape)) if i != axis):
        raise Unsupported("a scatter by an index that is smaller than the result")
    return axis


def updates_of(g, src, index, dtype):
    """Returns the updates as a Value of the index's shape. `src` is a number, or a tensor whose surplus elements are cut off."""
    if not hasattr(src, "shape"):
        return g.constant(src, dtype, index.shape)
    for axis, extent in enumerate(index.shape):
        src = g.slice(src, axis, 0, extent)
    return g.cast(src, dtype)


@row(aten.scatter.src, aten.scatter.value)
def scatter(g, node, x, dim, index, src):
    axis = along_axis(x, dim, index)
    last, is_one = last_update(g, hits(g, from_front(g, index, x.shape[axis]), x.shape[axis], axis), axis)
    return g.op("select", is_one, g.take_along(updates_of(g, src, index, x.dtype), last, axis), x)


@row(aten.scatter_add.default)
def scatter_add(g, node, x, dim, index, src):
    axis = along_axis(x, dim, index)
    return combined(g, "sum", x, hits(g, from_front(g, index, x.shape[axis]), x.shape[axis], axis), updates_of(g, src, index, x.dtype), axis)


@row(aten.scatter_reduce.two)
def scatter_reduce(g, node, x, dim, index, src, reduce, include_self=True):
    axis = along_axis(x, dim, index)
    how = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    return combined(g, how, x, hits(g, from_front(g, index, x.shape[axis]), x.shape[axis], axis), updates_of(g, src, index, x.dtype), axis, include_self)


@row(aten.index_reduce.default)
def index_reduce(g, node, x, dim, index, src, reduce, include_self=True):
    if not x.shape:
        raise Unsupported("an update of a number")
    axis = dim % len(x.shape)
    spread = g.broadcast(g.reshape(index, [index.shape[0] if i == axis else 1 for i in range(len(x.shape))]), src.shape)
    return scatter_reduce(g, node, x, dim, spread, src, reduce, include_self)


# Running sums and products: each element of the result is a reduction of the elements up to it.
for _how, _packet in (("sum", aten.cumsum), ("prod", aten.cumprod)):

    @row(_packet.default)
    def _running(g, node, x, dim, dtype=None, _how=_how):
        result, shape = result_of(node)
        if not shape:
            return g.cast(x, result)
        axis, extent = dim % len(shape), shape[dim]
        wide = [*shape[:axis], extent, *shape[axis:]]
        if extent > 1024 or math.prod(wide) > MOST_PAIRS:
            raise Unsupported(f"a running {_how} over many elements")
        before = g.op("le", g.iota(axis + 1, "i64", wide), g.iota(axis, "i64", wide))
        spread = g.broadcast(g.reshape(g.cast(x, result), [*shape[:axis], 1, *shape[axis:]]), wide)
        return g.reduce(_how, g.op("select", before, spread, g.constant(0 if _how == "sum" else 1, result, wide)), [axis + 1])
