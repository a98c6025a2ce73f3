"""Decompositions that resize images. They replace PyTorch's own decompositions, which differ from eager: PyTorch's subtract two infinities
where eager weights them, multiply pixels outside the image by zero (so NaN results from infinities), and lose the layout of the image."""

import contextlib
import itertools

import torch
from torch._decomp import decompositions as theirs
from torch._prims_common import get_computation_dtype, suggest_memory_format

aten = torch.ops.aten


def _sources(extent, count, align_corners, scale, dtype):
    """Returns, for each of `count` positions along an axis, the indices of its two neighbours among `extent` pixels, and the weight of the
    second one."""
    step = theirs._compute_scale(extent, count, align_corners, scale)
    at = theirs._compute_source_index(step, torch.arange(count).to(dtype), align_corners).clamp(min=0)
    first = at.to(torch.int64).clamp(max=extent - 1)
    second = first if count == extent else (first + 1).clamp(max=extent - 1)
    return first, second, (at - first).clamp(0, 1)


def _for_each(scales, output_size):
    """Returns a list with a scale or None for each axis: None for the last axes, for which `scales` has no element."""
    return [*scales, *[None] * (len(output_size) - len(scales))]


def _linear(x, output_size, align_corners, *scales):
    rank = len(output_size)
    if not x.is_floating_point():
        return NotImplemented  # eager rounds the interpolation weights of integer images to few bits, which this decomposition does not do
    dtype = get_computation_dtype(x.dtype)
    axes = []
    for axis, (extent, count, scale) in enumerate(zip(x.shape[2:], output_size, _for_each(scales, output_size))):
        axes.append([part.reshape(-1, *[1] * (rank - 1 - axis)) for part in _sources(extent, count, align_corners, scale, dtype)])
    corners = [aten._unsafe_index(x, [None, None, *places]).to(dtype) for places in itertools.product(*([first, second] for first, second, _ in axes))]
    for _, _, weight in reversed(axes):
        corners = [a * (1 - weight) + b * weight for a, b in zip(corners[::2], corners[1::2])]
    return corners[0].to(x.dtype).contiguous(memory_format=suggest_memory_format(x))


def _or_eager(function, overload):
    """Returns a function that calls `function` and, if that returns NotImplemented, the operator itself."""

    def resized(*arguments):
        made = function(*arguments)
        if made is NotImplemented:
            with torch._C._AutoDispatchBelowAutograd():
                made = overload(*arguments)
        return made

    return resized


def _of_factors(function):
    """Adapts a function of an output size and scales to the overload `vec`, whose arguments are a size or scale factors."""

    def resized(x, output_size, *options):
        *options, factors = options
        size = theirs.upsample_compute_output_size(x.size(), output_size, factors)
        return function(x, size, *options, *(factors or [None] * len(size)))

    return resized


def _nearest(exact):
    def resized(x, output_size, *scales):
        return theirs._upsample_nearest(x, output_size, _for_each(scales, output_size), exact=exact).contiguous(memory_format=suggest_memory_format(x))

    return resized


def _reflected(at, low, high):
    """Returns positions reflected at two borders, low / 2 and high / 2, until they lie between these."""
    if low == high:
        return torch.zeros_like(at)
    span = (high - low) / 2
    away = (at - low / 2).abs()
    rest = torch.fmod(away, span)
    return torch.where((away / span).floor().remainder(2) == 0, rest, span - rest) + low / 2


def grid_sampler_2d(x, grid, mode=0, padding=0, align_corners=False):
    return _sampled(x, grid, mode, padding, align_corners).contiguous()


def _sampled(x, grid, mode, padding, align_corners):
    """Samples the image as eager does. Pixels outside count as 0 with their weights, so a position that is NaN gives NaN. Where positions
    are clamped, a NaN position becomes 0."""
    images, channels, height, width = x.shape
    grid = grid.view(images, 1, *grid.shape[1:3], 2)
    numbers = [torch.arange(count).view(shape) for count, shape in ((images, (-1, 1, 1, 1)), (channels, (1, -1, 1, 1)))]

    def bounded(at, extent):
        if padding == 0:
            return at
        if padding == 2:
            at = _reflected(at, *((0, 2 * (extent - 1)) if align_corners else (-1, 2 * extent - 1)))
        return torch.where(at.isnan(), 0.0, at.clamp(0, extent - 1))

    def pixel(row, column):
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        row, column = (torch.where(inside, at, 0).to(torch.int64) for at in (row, column))
        return torch.where(inside, x[(*numbers, row, column)], 0.0)

    places = [grid[..., 1 - axis] * (extent * 0.5 - 0.5 if align_corners else extent * 0.5) + (extent * 0.5 - 0.5) for axis, extent in enumerate((height, width))]
    if mode != 2:
        places = [bounded(at, extent) for at, extent in zip(places, (height, width))]
    if mode == 1:
        return pixel(*(at.round() for at in places))
    (row, column), (below, right) = (at.floor() for at in places), places
    below, right = below - row, right - column
    if mode == 0:
        upper = pixel(row, column) * ((1 - right) * (1 - below)) + pixel(row, column + 1) * (right * (1 - below))
        return upper + pixel(row + 1, column) * ((1 - right) * below) + pixel(row + 1, column + 1) * (right * below)

    def line(at):
        return theirs._upsample_cubic_interp1d([pixel(bounded(at, height), bounded(column + step, width)) for step in range(-1, 3)], right)

    return theirs._upsample_cubic_interp1d([line(row + step) for step in range(-1, 3)], below)


def _overloads():
    functions = {f"upsample_{name}": _linear for name in ("linear1d", "bilinear2d", "trilinear3d")}
    functions |= {f"upsample_nearest{rank}d": _nearest(False) for rank in (1, 2, 3)} | {f"_upsample_nearest_exact{rank}d": _nearest(True) for rank in (1, 2, 3)}
    return {getattr(aten, name).default: function for name, function in functions.items()}


OVERLOADS = _overloads()
_SHOWN_FIRST = {overload: _or_eager(function, overload) for overload, function in OVERLOADS.items()}
_SHOWN_FIRST |= {overload.overloadpacket.vec: _of_factors(function) for overload, function in _SHOWN_FIRST.items()}


@contextlib.contextmanager
def in_place_of_theirs():
    """A context in which this file's functions replace PyTorch's Python kernels for these operators, because PyTorch, when it traces for a
    backend, takes operators apart by such kernels before it looks for decompositions. Dynamo compiles one graph at a time, and only tracing
    uses the kernels, so no other code is affected."""
    keys = (torch._C.DispatchKey.Autograd, torch._C.DispatchKey.CompositeImplicitAutograd)
    kept = {overload: {key: overload.py_kernels[key] for key in keys if key in overload.py_kernels} for overload in _SHOWN_FIRST}

    def put(kernels):
        for overload, known in kernels.items():
            overload.py_kernels.update(known)
            overload._dispatch_cache.clear()

    put({overload: dict.fromkeys(known, _SHOWN_FIRST[overload]) for overload, known in kept.items()})
    try:
        yield
    finally:
        put(kept)
