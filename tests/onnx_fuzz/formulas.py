"""Formulas of the standard in doubles and integers, for operators that the peers compute wrongly."""

import math

import ml_dtypes
import numpy as np
from onnx import helper, numpy_helper
from onnx.reference.ops import op_resize

import values

WIDER = np.dtype(np.float64)
erf, erfc = (np.vectorize(f, otypes=[np.float64]) for f in (math.erf, math.erfc))


class Node:
    """A node, with its inputs by position (None for one that is left out) and its attributes."""

    def __init__(self, model, arrays):
        node = model.graph.node[0]
        known = {w.name: numpy_helper.to_array(w) for w in model.graph.initializer} | arrays
        self.inputs = [known.get(name) for name in node.input]
        self.attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        self.opset = max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))

    def input(self, number):
        """Returns an input, with floats converted to doubles; None if the input is left out."""
        array = self.inputs[number] if number < len(self.inputs) else None
        return array.astype(WIDER) if array is not None and values.is_float(array.dtype) else array

    def get(self, name, default):
        return self.attributes.get(name, default)


def saturated(numbers, dtype):
    """Converts doubles to a type. For integers, values outside of the type become the nearest limit, and NaN becomes 0."""
    if values.is_float(dtype):
        return numbers.astype(dtype)
    facts = ml_dtypes.iinfo(dtype)
    whole = np.trunc(np.nan_to_num(numbers, nan=0.0, posinf=np.inf, neginf=-np.inf))
    inside = np.where((whole >= float(facts.max)) | (whole <= float(facts.min)), 0, whole).astype(dtype)
    return np.where(whole >= float(facts.max), np.array(facts.max, dtype), np.where(whole <= float(facts.min), np.array(facts.min, dtype), inside))


def cast(node, dtypes):
    x = node.input(0)
    if dtypes[0] == np.bool_:
        return x != 0
    return saturated(x, dtypes[0]) if x.dtype == WIDER else x.astype(dtypes[0])


def power(node, dtypes):
    x, y = node.input(0), node.input(1)
    if values.is_float(dtypes[0]) or y.dtype != WIDER:
        return None
    return saturated(np.power(x.astype(WIDER), y), dtypes[0])


def quantized(node, dtypes):
    """QuantizeLinear with one scale, or with one for each index along an axis."""
    x, scale, zero = node.inputs[0], node.inputs[1], node.inputs[2] if len(node.inputs) > 2 else None
    along = [1] * x.ndim
    if scale.ndim == 1 and scale.size > 1:
        along[node.get("axis", 1)] = -1
    if scale.ndim > 1 or values.is_float(dtypes[0]):
        return None
    wide = np.result_type(x.dtype, np.float32) if x.dtype in (np.float16, np.float32, np.float64) else np.float32
    by = np.rint(x.astype(wide) / scale.astype(wide).reshape(along if scale.size > 1 else [1] * x.ndim)).astype(WIDER)
    return saturated(by + (0 if zero is None else zero.astype(WIDER).reshape(along if zero.size > 1 else [1] * x.ndim)), dtypes[0])


def gelu(node, dtypes):
    x = node.input(0)
    if node.get("approximate", b"none") == b"tanh":
        return tanh_gelu(x)
    return np.where(np.isinf(x), np.maximum(x, 0), x / 2 * erfc(-x / math.sqrt(2)))


def tanh_gelu(x):
    up = 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return np.where(x == -np.inf, 0, x / (1 + np.exp(-up)))


def biased(node):
    bias = node.input(1)
    return node.input(0) if bias is None else node.input(0) + bias


def bias_gelu(node, dtypes):
    x = biased(node)
    return np.where(np.isinf(x), np.maximum(x, 0), x / 2 * erfc(-x / math.sqrt(2)))


def quick_gelu(node, dtypes):
    x = node.input(0)
    return x / (1 + np.exp(-node.get("alpha", 1.702) * x))


def local_response(node, dtypes):
    """LRN as in the standard: the window has floor((size - 1) / 2) channels before and ceil((size - 1) / 2) channels after each channel.
    Sums of squares may overflow as they do in f32."""
    x, size = node.input(0), node.get("size", 1)
    sums = np.zeros_like(x)
    for channel in range(x.shape[1]):
        window = x[:, max(0, channel - (size - 1) // 2) : channel + size // 2 + 1]
        sums[:, channel] = (window**2).sum(axis=1)
    scale, bias, beta = np.float64(node.get("alpha", np.float32(1e-4))) / size, node.get("bias", 1.0), np.float64(node.get("beta", 0.75))
    return [x / (bias + scale * squares) ** beta for squares in (sums, sums.astype(np.float32).astype(WIDER))]


def group_normalization(node, dtypes):
    """GroupNormalization by differences from the mean; the peers' sums of squares overflow earlier. Up to opset 20 scale and bias are per
    group."""
    x, scale, bias = (node.input(i) for i in range(3))
    groups = x.reshape(x.shape[0], node.get("num_groups", 1), -1)
    centred = groups - groups.mean(-1, keepdims=True)
    normal = (centred / np.sqrt((centred**2).mean(-1, keepdims=True) + np.float64(node.get("epsilon", np.float32(1e-5))))).reshape(x.shape)
    along = [np.repeat(v, x.shape[1] // v.size).reshape([-1] + [1] * (x.ndim - 2)) for v in (scale, bias)]
    return normal * along[0] + along[1]


def lp_normalization(node, dtypes):
    x, axis = node.input(0), node.get("axis", -1)
    size = np.abs(x).sum(axis, keepdims=True) if node.get("p", 2) == 1 else np.sqrt((x**2).sum(axis, keepdims=True))
    return [x / size, np.where(size == 0, 0, x / size)]  # up to opset 22 the standard does not define 0 / 0


def hardmax(node, dtypes):
    """Returns 1 at the first NaN or, if there is none, at the first largest element; 0 elsewhere."""
    x = node.input(0)
    axis = node.get("axis", 1 if node.opset < 13 else -1)
    shape = x.shape
    if node.opset < 13:
        axis %= x.ndim + (axis == x.ndim)
        x, axis = x.reshape(math.prod(shape[:axis]), -1) if x.size else x, 1
    if x.size == 0:
        return x
    made = np.zeros_like(x)
    np.put_along_axis(made, np.expand_dims(np.argmax(x, axis), axis), 1, axis)
    return made.reshape(shape)


def gemm(node, dtypes):
    """Gemm of integers: products wrap. If alpha or beta is no integer, the sum is truncated."""
    a, b, c = (node.inputs[i] if i < len(node.inputs) else None for i in range(3))
    if values.is_float(a.dtype):
        return None
    alpha, beta = (float(node.get(name, 1.0)) for name in ("alpha", "beta"))
    product = (a.T if node.get("transA", 0) else a).astype(a.dtype) @ (b.T if node.get("transB", 0) else b)
    if alpha == int(alpha) and beta == int(beta):
        factors = [np.array(int(f) % 2 ** (8 * a.dtype.itemsize)).astype(np.uint64).astype(a.dtype) for f in (alpha, beta)]
        return product * factors[0] if c is None else product * factors[0] + c * factors[1]
    return saturated(product.astype(WIDER) * alpha + (0 if c is None else c.astype(WIDER) * beta), dtypes[0])


def axes_of(node):
    """Returns the axes of a reduction: () if nothing is reduced, None if all axes are."""
    axes = node.inputs[1] if len(node.inputs) > 1 else node.get("axes", None)
    if axes is None or len(axes) == 0:
        return () if node.get("noop_with_empty_axes", 0) else None
    return tuple(int(a) for a in axes)


def log_sum_exp(node, dtypes):
    x, axes = node.inputs[0], axes_of(node)
    if values.is_float(x.dtype):
        return None
    most = x.astype(WIDER).max(axes, keepdims=True, initial=-np.inf)
    most = np.where(most == -np.inf, 0, most)
    made = saturated(np.log(np.exp(x - most).sum(axes, keepdims=True)) + most, dtypes[0])
    return made if node.get("keepdims", 1) else np.squeeze(made, axes)


def of_integers(combine):
    """Returns the formula of a reduction of integers by `combine`; None for floats."""

    def run(node, dtypes):
        x, axes = node.inputs[0], axes_of(node)
        if values.is_float(x.dtype):
            return None
        return combine(x, {"axis": axes, "keepdims": bool(node.get("keepdims", 1))}, dtypes[0])

    return run


def log_sum(x, how, dtype):
    """Returns both allowed results of ReduceLogSum of integers: by a sum that wraps, and by a sum in doubles."""
    sums = x.sum(**how, dtype=dtype), x.astype(WIDER).sum(**how)
    return [saturated(np.log(s.astype(WIDER)), dtype) for s in sums]


def mean(x, how, dtype):
    """ReduceMean of integers: the sum wraps, and the quotient is truncated."""
    sums = x.sum(**how, dtype=dtype)
    count = max(1, x.size // max(1, sums.size))
    return np.where(sums < 0, -(-sums // count), sums // count).astype(dtype) if dtype.kind == "i" else sums // dtype.type(count)


def shrink(node, dtypes):
    x, by, lambd = node.input(0).astype(WIDER), np.float64(node.get("bias", 0.0)), np.float64(node.get("lambd", 0.5))
    return saturated(np.where(x < -lambd, x + by, np.where(x > lambd, x - by, 0)), dtypes[0])


def resize(node, dtypes):
    """The reference implementation's interpolation, in doubles. In the mode `nearest`, offsets are interpolated, and elements are gathered
    by the offsets."""
    old = node.opset < 11  # before opset 11, coordinates are computed as in the operator Upsample
    x, scales, sizes = node.inputs[0], *(node.inputs[i] if i < len(node.inputs) else None for i in ((1, 9) if old else (2, 3)))
    scales = np.array(node.get("scales", scales))
    if "axes" in node.attributes or node.get("coordinate_transformation_mode", b"") == b"tf_crop_and_resize":
        return None
    mode, scales = node.get("mode", b"nearest"), None if scales.dtype == object or scales.size == 0 else scales.astype(WIDER)
    kinds = {b"nearest": "_nearest_coeffs", b"linear": "_linear_coeffs", b"cubic": "_cubic_coeffs"}
    function, more = getattr(op_resize, kinds[mode] + ("_antialias" if node.get("antialias", 0) else "")), {}
    if mode == b"nearest":
        more = {"mode": node.get("nearest_mode", b"floor" if old else b"round_prefer_floor").decode()}
    if mode == b"cubic":
        more = {"A": node.get("cubic_coeff_a", -0.75)}
    places = np.arange(x.size, dtype=WIDER).reshape(x.shape)
    made = op_resize._interpolate_nd(
        places if mode == b"nearest" else x.astype(WIDER), lambda ratio, scale: function(ratio, **({} if mode == b"nearest" else {"scale": scale}), **more),
        output_size=None if sizes is None or sizes.size == 0 else [int(s) for s in sizes], scale_factors=scales,
        keep_aspect_ratio_policy=node.get("keep_aspect_ratio_policy", b"stretch").decode(), exclude_outside=bool(node.get("exclude_outside", 0)),
        coordinate_transformation_mode=node.get("coordinate_transformation_mode", b"asymmetric" if old else b"half_pixel").decode(),
        extrapolation_value=node.get("extrapolation_value", 0.0),
    )  # fmt: skip
    if mode == b"nearest":
        return x.ravel()[made.astype(np.int64)]
    return made if values.is_float(x.dtype) else saturated(np.rint(made), dtypes[0])


def cubic_weight(far, a=-0.75):
    """Returns the weight of an element at a distance of up to 2 in Keys' cubic interpolation."""
    return np.where(far <= 1, ((a + 2) * far - (a + 3)) * far * far + 1, ((far - 5) * far + 8) * far * a - 4 * a)


def grid_sample(node, dtypes):
    """Linear and cubic interpolation of images. (The reference computes coordinates in f32, whatever the type of the grid.)"""
    x, grid, padding, mode = node.input(0), node.input(1), node.get("padding_mode", b"zeros"), node.get("mode", b"linear")
    cubic = mode in (b"cubic", b"bicubic")
    if x.ndim != 4 or mode == b"nearest" or (cubic and padding == b"border"):
        return None
    align, taps = node.get("align_corners", 0), []

    def reflected(at, low, high):
        if high <= low:
            return np.full_like(at, low)
        turns = np.floor(np.abs(at - low) / (high - low))
        rest = np.abs(at - low) - turns * (high - low)
        return np.where(turns % 2 == 0, low + rest, high - rest)

    for n, at in zip(x.shape[2:], (grid[..., 1], grid[..., 0])):  # the grid has the coordinate of the last axis first
        low, high = (0, n - 1) if align else (-0.5, n - 0.5)
        at = (at + 1) / 2 * (n - 1) if align else ((at + 1) * n - 1) / 2
        at = np.clip(at, 0, n - 1) if padding == b"border" else reflected(at, low, high) if padding == b"reflection" else at
        pairs = []
        first, rest = np.floor(at), at - np.floor(at)
        for by in range(-1, 3) if cubic else range(2):
            place, weight = first + by, cubic_weight(np.abs(rest - by)) if cubic else 1 - np.abs(rest - by)
            inside = (place >= 0) & (place <= n - 1) | (padding != b"zeros")
            place = np.rint(reflected(place, low, high)) if padding == b"reflection" else place
            pairs.append((saturated(np.clip(place, 0, n - 1), np.dtype(np.int64)), weight, inside))
        taps.append(pairs)
    batch, channel = np.ogrid[: x.shape[0], : x.shape[1]]
    batch, channel = batch[..., None, None], channel[..., None, None]
    expanded = [[tuple(part[:, None] for part in tap) for tap in pairs] for pairs in taps]
    return sum(np.where(a & b, x[batch, channel, i, j] * v * w, 0) for i, v, a in expanded[0] for j, w, b in expanded[1])


def byte_product(node, dtypes):
    """MatMulIntegerToFloat if each operand has one scale and one zero point."""
    a, b, by_a, by_b, zero_a, zero_b, bias = (node.input(i) for i in range(7))
    if any(v is not None and v.size > 1 for v in (by_a, by_b, zero_a, zero_b)):
        return None
    left, right = (m.astype(WIDER) - (0 if zero is None else zero.astype(WIDER)) for m, zero in ((a, zero_a), (b, zero_b)))
    return left @ right * (by_a * by_b) + (0 if bias is None else bias)


def dequantized(node, dtypes):
    x, scale, zero = node.inputs[0], node.input(1), node.inputs[2] if len(node.inputs) > 2 else None
    if scale.ndim > 1 or values.is_float(x.dtype):
        return None
    along = [1] * x.ndim
    if scale.size > 1:
        along[node.get("axis", 1)] = -1
    return (x.astype(WIDER) - (0 if zero is None else zero.astype(WIDER).reshape(along))) * scale.reshape(along)


class Windows:
    """The windows of a pooling operator as in the standard, with auto_pad, ceil_mode and dilations."""

    def __init__(self, node, x=None):
        x = node.input(0) if x is None else x
        self.x, rank = x.astype(WIDER), x.ndim - 2
        self.kernel = node.get("kernel_shape", None)
        self.strides, self.dilations = (node.get(name, [1] * rank) for name in ("strides", "dilations"))
        pads, auto, ceil = node.get("pads", [0] * 2 * rank), node.get("auto_pad", b"NOTSET"), node.get("ceil_mode", 0)
        self.begin, self.end, self.out = [], [], []
        for d in range(rank):
            extent, reach = x.shape[d + 2], (self.kernel[d] - 1) * self.dilations[d] + 1
            before, behind = (pads[d], pads[d + rank]) if auto == b"NOTSET" else (0, 0)
            if auto in (b"SAME_UPPER", b"SAME_LOWER"):
                out = -(-extent // self.strides[d])
                total = max(0, (out - 1) * self.strides[d] + reach - extent)
                before = total // 2 if auto == b"SAME_UPPER" else total - total // 2
                behind = total - before
            else:
                room = extent + before + behind - reach
                out = (-(-room // self.strides[d]) if ceil else room // self.strides[d]) + 1
                if ceil and (out - 1) * self.strides[d] >= extent + before:
                    out -= 1
            self.begin.append(before)
            self.end.append(behind)
            self.out.append(out)

    def __iter__(self):
        """Yields (index of the result, elements of the window, number of the window's positions in the image or its padding)."""
        for place in np.ndindex(*self.out):
            picks, padded = [], 1
            for d, p in enumerate(place):
                at = [p * self.strides[d] - self.begin[d] + k * self.dilations[d] for k in range(self.kernel[d])]
                picks.append([a for a in at if 0 <= a < self.x.shape[d + 2]])
                padded *= sum(a < self.x.shape[d + 2] + self.end[d] for a in at)
            chosen = self.x[np.ix_(range(self.x.shape[0]), range(self.x.shape[1]), *picks)]
            yield place, chosen.reshape(*chosen.shape[:2], math.prod(chosen.shape[2:])), padded

    def reduced(self, function):
        made = np.zeros((*self.x.shape[:2], *self.out))
        for place, window, padded in self:
            made[(slice(None), slice(None), *place)] = function(window, padded)
        return made


def average_pool(node, dtypes):
    """AveragePool, in which NaN propagates."""
    with_padding = node.get("count_include_pad", 0)
    return Windows(node).reduced(lambda window, padded: window.sum(-1) / (padded if with_padding else window.shape[-1]))


def lp_pool(node, dtypes):
    p = node.get("p", 2)
    return Windows(node).reduced(lambda window, padded: (np.abs(window) ** p).sum(-1) ** (1 / p))


def max_pool(node, dtypes):
    """MaxPool with indices, which ignores NaN unless it is the first element of a window. The index is the offset of the first largest
    element in the whole tensor."""
    windows = Windows(node)
    made = [np.full((*windows.x.shape[:2], *windows.out), -np.inf), np.zeros((*windows.x.shape[:2], *windows.out), np.int64)]
    if node.get("storage_order", 0) and len(dtypes) > 1:
        return None
    for (place, window, _), (_, places, _) in zip(windows, Windows(node, np.arange(windows.x.size).reshape(windows.x.shape))):
        if window.shape[-1] == 0:
            continue
        ordered = np.where(np.isnan(window), -np.inf, window)
        ordered[..., 0] = np.where(np.isnan(window[..., 0]), np.inf, ordered[..., 0])
        at = np.argmax(ordered, -1)[..., None]
        for result, of in zip(made, (window, places)):
            result[(slice(None), slice(None), *place)] = np.take_along_axis(of, at, -1)[..., 0]
    return tuple(made[: len(dtypes)])


def one_hot(node, dtypes):
    """OneHot; indices that are floats are truncated."""
    index, depth, (off, on) = node.input(0), int(node.inputs[1].ravel()[0]), node.input(2)
    axis = node.get("axis", -1)
    at = np.expand_dims(np.trunc(index), axis if axis >= 0 else index.ndim + 1 + axis)
    places = np.arange(depth).reshape([depth if d == axis % (index.ndim + 1) else 1 for d in range(index.ndim + 1)])
    return np.where(at == places, on, np.where(at + depth == places, on, off))


FORMULAS = {
    "Cast": cast, "CastLike": cast, "Pow": power, "QuantizeLinear": quantized, "DequantizeLinear": dequantized, "Gelu": gelu, "BiasGelu": bias_gelu,
    "FastGelu": lambda node, dtypes: tanh_gelu(biased(node)), "QuickGelu": quick_gelu, "Erf": lambda node, dtypes: erf(node.input(0)),
    "HardSwish": lambda node, dtypes: node.input(0) * np.clip(node.input(0) / 6 + 0.5, 0, 1), "LRN": local_response, "LpNormalization": lp_normalization,
    "GroupNormalization": group_normalization,
    "Hardmax": hardmax, "Gemm": gemm, "AveragePool": average_pool, "LpPool": lp_pool, "MaxPool": max_pool, "OneHot": one_hot, "ReduceLogSumExp": log_sum_exp,
    "ReduceSum": of_integers(lambda x, how, dtype: x.sum(**how, dtype=dtype)), "ReduceProd": of_integers(lambda x, how, dtype: x.prod(**how, dtype=dtype)),
    "ReduceSumSquare": of_integers(lambda x, how, dtype: (x * x).sum(**how, dtype=dtype)),
    "ReduceL1": of_integers(lambda x, how, dtype: np.abs(x).sum(**how, dtype=dtype)),
    "ReduceL2": of_integers(lambda x, how, dtype: saturated(np.sqrt((x.astype(WIDER) ** 2).sum(**how)), dtype)),
    "ReduceLogSum": of_integers(log_sum), "ReduceMean": of_integers(mean), "Shrink": shrink, "Resize": resize, "Upsample": resize, "GridSample": grid_sample,
    "MatMulIntegerToFloat": byte_product,
}  # fmt: skip
